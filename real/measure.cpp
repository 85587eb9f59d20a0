#include "real/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "algorithms/report.h"
#include "algorithms/serial.h"
#include "algorithms/spi.h"
#include "models/model.h"
#include "models/random.h"
#include "real/scheduling.h"
#include "real/workers.h"

namespace gradwire {

namespace {

using Bytes = std::vector<std::byte>;

double process_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Worker 0's number on all workers and the others' on worker 0; also a barrier.
std::vector<double> exchange(Communicator& comm, double mine) {
  std::vector<double> all(static_cast<std::size_t>(comm.size()), mine);
  for (int other = 1; other < comm.size(); ++other) {
    double& theirs = all[static_cast<std::size_t>(other)];
    if (comm.rank() == 0) {
      comm.recv(other, writable_bytes_of(std::span(&theirs, 1)));
      comm.send(other, bytes_of(std::span<const double>(&mine, 1)));
    } else if (comm.rank() == other) {
      comm.send(0, bytes_of(std::span<const double>(&mine, 1)));
      comm.recv(0, writable_bytes_of(std::span(all.data(), 1)));
    }
  }
  return all;
}

void sleep_until(const Communicator& comm, double time_s) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time_s - comm.now_s()));
}

struct Flow {
  int from;
  int to;
};

std::vector<Flow> flows(StreamPattern pattern, int workers) {
  std::vector<Flow> all;
  switch (pattern) {
    case StreamPattern::kOneWay:
      return {{0, 1}};
    case StreamPattern::kBothWays:
      return {{0, 1}, {1, 0}};
    case StreamPattern::kFanOut:
      for (int w = 1; w < workers; ++w) all.push_back({0, w});
      return all;
    case StreamPattern::kFanIn:
      for (int w = 1; w < workers; ++w) all.push_back({w, 0});
      return all;
  }
  return all;
}

// Sends and receives the flows of this worker, all in step.
void run_flows(Communicator& comm, const std::vector<Flow>& all, std::size_t bytes, int messages) {
  constexpr std::size_t kUnderWay = 4;
  std::vector<Bytes> buffers;
  std::deque<Request> under_way;
  const auto wait_one = [&] {
    comm.wait(under_way.front());
    under_way.pop_front();
  };
  std::size_t mine = 0;
  for (const Flow& flow : all) mine += flow.from == comm.rank() || flow.to == comm.rank() ? 1 : 0;
  buffers.assign(mine * kUnderWay, Bytes(bytes));
  std::size_t next = 0;
  for (int m = 0; m < messages; ++m)
    for (const Flow& flow : all) {
      if (flow.from != comm.rank() && flow.to != comm.rank()) continue;
      if (under_way.size() == buffers.size()) wait_one();
      Bytes& buffer = buffers[next++ % buffers.size()];
      under_way.push_back(flow.to == comm.rank() ? comm.irecv(flow.from, buffer)
                                                 : comm.isend(flow.to, buffer));
    }
  while (!under_way.empty()) wait_one();
}

std::vector<double> repeat(int times, double amount, const std::function<void()>& work) {
  std::vector<double> rates;
  for (int i = -1; i < times; ++i) {
    const double start_s = process_cpu_s();
    work();
    if (i >= 0) rates.push_back(amount / (process_cpu_s() - start_s));
  }
  return rates;
}

Matrix random_matrix(Index rows, Index cols) {
  Matrix m(rows, cols);
  RandomStream(1, Purpose::kInitialParameters, static_cast<std::uint64_t>(rows)).fill_uniform(m);
  return m;
}

constexpr int kRepetitions = 30;
constexpr Index kRows = 64;  // of a batch

// Forward and back through a network, weight gradients included.
std::vector<double> product_rates() {
  const auto model =
      make_model({.name = "mlp:784-1024-512-10"}, {.features = 784, .classes = 10}, 1);
  const Batch batch{random_matrix(kRows, 784), std::vector<int>(kRows, 1)};
  Gradients gradients = zero_gradients(*model);
  const Work work = model->forward_work(kRows) + model->backward_work(kRows);
  const BackwardSink sink{.linear =
                              [&](const LayerTrace& trace, const Work& /*work*/) {
                                const LinearMap& map =
                                    model->linear_maps()[static_cast<std::size_t>(trace.map)];
                                gradients[static_cast<std::size_t>(map.weight)].noalias() =
                                    trace.activation.transpose() * trace.delta;
                              },
                          .direct = {}};
  return repeat(kRepetitions, work.flops, [&] {
    model->backward(softmax_cross_entropy(model->forward(batch), batch.labels).delta, sink);
  });
}

// Of arrays that no cache holds, as parameters, gradients and an optimiser's state are together.
std::vector<double> memory_rates() {
  const Index n = Index{1} << 25U;
  Matrix x = Matrix::Ones(1, n), y = Matrix::Zero(1, n);
  return repeat(kRepetitions, pass_work(n, 2, 3).memory_bytes, [&] { y += Scalar{0.5} * x; });
}

std::vector<double> iteration_rates() {
  const Matrix a = random_matrix(kRows, 1024), d = random_matrix(kRows, 784);
  const SpiOptions options{.rank = 10};
  const auto iterate = [&] {
    return structured_power_iterations(a, d, options,
                                       [](Index /*k*/, Matrix& start) { start.setOnes(); });
  };
  return repeat(kRepetitions, iterate().work.flops, [&] { iterate(); });
}

}  // namespace

PingPong measure_ping_pong(Communicator& comm, std::size_t bytes, int round_trips) {
  PingPong found{.bytes = static_cast<double>(bytes), .one_way_s = {}};
  exchange(comm, 0);
  double cpu_s = 0;
  if (comm.rank() < 2) {
    const int other = 1 - comm.rank();
    const Bytes outgoing(bytes);
    std::array<Bytes, 2> incoming{Bytes(bytes), Bytes(bytes)};
    const auto post = [&](int i) {
      return comm.irecv(other, incoming[static_cast<std::size_t>(i % 2)]);
    };
    Request next = post(0);
    double start_s = comm.now_s();
    const double cpu_start_s = process_cpu_s();
    for (int i = 0; i < round_trips; ++i) {
      const Request received = next;
      if (comm.rank() == 0) {
        if (i + 1 < round_trips) next = post(i + 1);
        const Request sent = comm.isend(other, outgoing);
        comm.wait(received);
        comm.wait(sent);
        const double end_s = comm.now_s();
        if (i > 0) found.one_way_s.push_back((end_s - start_s) / 2);
        start_s = end_s;
      } else {
        comm.wait(received);
        if (i + 1 < round_trips) next = post(i + 1);
        comm.send(other, outgoing);
      }
    }
    cpu_s = process_cpu_s() - cpu_start_s;
  }
  for (const double each : exchange(comm, cpu_s)) found.cpu_s += each / (2 * round_trips);
  return found;
}

double measure_burst(Communicator& comm, bool second_lane, int messages) {
  constexpr int kBursts = 300;
  constexpr Index kFeatures = 1500, kOutputs = 256;  // more than fits into the nearest caches
  const auto model =
      make_model({.name = "mlp:1500-256"}, {.features = kFeatures, .classes = kOutputs}, 1);
  const Batch batch{random_matrix(kRows, kFeatures), std::vector<int>(kRows, 1)};
  const auto compute = [&] { model->forward(batch); };
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  const Bytes outgoing(1024);
  std::array<Bytes, 2> incoming{outgoing, outgoing};
  const auto burst = [&](Communicator& lane) {
    Request posted = lane.irecv(previous, incoming[0]);
    for (int i = 1; i <= messages; ++i) {
      const Request received = posted;
      if (i < messages) posted = lane.irecv(previous, incoming[static_cast<std::size_t>(i % 2)]);
      const Request sent = lane.isend(next, outgoing);
      lane.wait(received);
      lane.wait(sent);
    }
  };
  const auto cpu_s = [&](int times, const std::function<void()>& work) {
    const double start_s = process_cpu_s();
    for (int i = 0; i < times; ++i) work();
    return (process_cpu_s() - start_s) / times;
  };
  const auto both = [&] {
    if (second_lane) comm.start(burst);
    compute();
    if (second_lane) return comm.finish();
    burst(comm);
  };
  cpu_s(10, both);
  const double compute_s = cpu_s(kBursts, compute);
  exchange(comm, 0);
  double sum_s = 0;
  for (const double both_s : exchange(comm, cpu_s(kBursts, both) - compute_s)) sum_s += both_s;
  return sum_s / comm.size();
}

Stream measure_stream(Communicator& comm, StreamPattern pattern, std::size_t bytes, int messages) {
  const std::vector<Flow> all = flows(pattern, comm.size());
  const auto count = [&](int Flow::*end) {
    return std::count_if(all.begin(), all.end(),
                         [&](const Flow& flow) { return flow.*end == comm.rank(); });
  };
  const auto sends = static_cast<double>(count(&Flow::from));
  const auto receives = static_cast<double>(count(&Flow::to));
  run_flows(comm, all, bytes, 4);  // windows open
  exchange(comm, 0);
  const double start_s = comm.now_s(), cpu_start_s = process_cpu_s();
  run_flows(comm, all, bytes, messages);
  const double duration_s = comm.now_s() - start_s;
  const double cpu_s = (process_cpu_s() - cpu_start_s) / messages;
  const auto mean = [&](double value, bool counts) {
    double sum = 0;
    for (const double each : exchange(comm, counts ? value : 0)) sum += each;
    double of = 0;
    for (const double each : exchange(comm, counts ? 1 : 0)) of += each;
    return of > 0 ? sum / of : 0;
  };
  const auto payload_bits = 8.0 * static_cast<double>(bytes) * messages;
  Stream found{.bytes = static_cast<double>(bytes)};
  found.goodput_bit_per_s = mean(payload_bits / duration_s, receives > 0);
  found.send_cpu_s = mean(sends > 0 ? cpu_s / sends : 0, sends > 0 && receives == 0);
  found.receive_cpu_s = mean(receives > 0 ? cpu_s / receives : 0, receives > 0 && sends == 0);
  return found;
}

std::vector<double> measure_arrival(Communicator& comm, double early_s, int times) {
  constexpr double kMargin_s = 0.1;
  std::vector<double> arrivals_s;
  Bytes message(64);
  for (int i = 0; i < times; ++i) {
    // Everyone has worker 0's clock when the exchange ends: the workers of a machine share one.
    const double send_s = exchange(comm, comm.now_s())[0] + kMargin_s + early_s;
    double arrival_s = 0;
    if (comm.rank() == 0) {
      sleep_until(comm, send_s);
      comm.send(1, message);
    } else if (comm.rank() == 1) {
      sleep_until(comm, send_s - early_s);
      comm.recv(0, message);
      arrival_s = comm.now_s() - send_s;
    }
    arrivals_s.push_back(exchange(comm, arrival_s)[comm.rank() == 0 ? 1 : 0]);
  }
  return arrivals_s;
}

double measure_send_wait(Communicator& comm, std::size_t bytes) {
  Bytes message(bytes);
  exchange(comm, 0);
  double waited_s = 0;
  if (comm.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the receive is there
    const double start_s = comm.now_s();
    comm.send(1, message);
    waited_s = comm.now_s() - start_s;
  } else if (comm.rank() == 1) {
    comm.recv(0, message);
  }
  return exchange(comm, waited_s)[0];
}

double measure_queue(Communicator& comm, int messages) {
  constexpr std::size_t kBytes = 1 << 18;
  constexpr auto kPause = std::chrono::milliseconds(10);
  const auto round_trip_s = [&] {
    std::vector<double> times_s;
    Bytes message(64);
    for (int i = 0; i < messages && comm.rank() != 1; ++i) {
      const double start_s = comm.now_s();
      if (comm.rank() == 0) {
        const Request answer = comm.irecv(2, message);
        comm.send(2, Bytes(message.size()));
        comm.wait(answer);
        times_s.push_back(comm.now_s() - start_s);
        std::this_thread::sleep_for(kPause);
      } else {
        comm.recv(0, message);
        comm.send(0, message);
      }
    }
    return summarize(times_s).median;
  };
  exchange(comm, 0);
  const double idle_s = round_trip_s();
  exchange(comm, 0);
  if (comm.rank() < 2)
    comm.start([&](Communicator& lane) { run_flows(lane, {{0, 1}}, kBytes, messages); });
  const double loaded_s = round_trip_s();
  comm.finish();
  return exchange(comm, loaded_s - idle_s)[0];
}

ComputeRates measure_compute(int cores) {
  const auto all = run_workers(cores, 1, [](int rank) {
    stay_on_core_of(rank);
    ByteWriter out;
    out.put_array(product_rates());
    out.put_array(memory_rates());
    out.put_array(iteration_rates());
    return out.take();
  });
  ComputeRates found;
  for (const std::string& bytes : all) {
    ByteReader in(bytes);
    for (auto* rates :
         {&found.product_flop_per_s, &found.memory_byte_per_s, &found.iteration_flop_per_s}) {
      const auto part = in.get_array<double>();
      rates->insert(rates->end(), part.begin(), part.end());
    }
  }
  return found;
}

}  // namespace gradwire
