// PowerSGD (Vogels, Karimireddy & Jaggi, NeurIPS 2019, algorithms 1 and 2; options as in PyTorch's
// powerSGD_hook): one step of subspace iteration per batch on the mean gradient, with error
// feedback.
//
// flavour=reference: every weight gradient M (in, out) that is worth it (min-compression-rate) goes
// as P (in, r) and Q (out, r), r = min(rank, in, out): one all-reduce of all P, then one of all Q.
// Everything else, in one all-reduce, is summed meanwhile (overlap=on).  Q starts from the previous
// step's (warm-start=on) or from normal numbers keyed by (seed, step, parameter, column).
// flavour=authors: the rank-dAD authors' baseline (authors_power_sgd() in powersgd.h), one blocking
// all-gather per factor and per uncompressed parameter; own random start on every worker.
//
// Differences from PyTorch's hook: it stores weights as (out, in), so its P is our Q: the same
// bytes and flops, but the approximation projects the other side first.  No buckets: compression
// begins after back-propagation.  A column of Q that has become zero is drawn anew.  start-step is
// 0 where PyTorch's start_powerSGD_iter is 1000: a prediction wants the steady state from its first
// batch.
//
// Sent per worker and step, with N workers, s bytes per number, F = r sum(in + out) over the
// compressed weights, U uncompressed numbers; reference up to the rounding of chunks:
//   reference, ring  3 * 2(N-1) messages (2 * 2(N-1) if U = 0)   2(N-1)/N (F + U) s bytes
//   authors          (N-1) (2 weights + uncompressed parameters) (N-1) (F + U) s
// and other exchanges as in dsgd.cpp with K = 3.  State: Q, and M's shape for error feedback.
// Flops per weight: 4 r in out to compress, 2 r in out to decompress, 2 in out for error feedback,
// and the Gram-Schmidt of P and Q.  Metrics: residual_norm (with error feedback).
#include "algorithms/powersgd.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "algorithms/gradient_parts.h"
#include "models/random.h"

namespace gradwire {

void orthogonalize(Matrix& p, double epsilon) {
  Matrix t = p.transpose();  // columns as contiguous rows
  for (Index k = 0; k < t.rows(); ++k) {
    Scalar norm = t.row(k).norm();
    Scalar previous = norm;
    for (int pass = 0; pass < 2; ++pass) {
      previous = norm;
      for (Index j = 0; j < k; ++j) t.row(k) -= t.row(k).dot(t.row(j)) * t.row(j);
      norm = t.row(k).norm();
    }
    if (norm == 0 || norm < previous / 2)  // nothing but rounding was left
      t.row(k).setZero();
    else
      t.row(k) /= norm + static_cast<Scalar>(epsilon);
  }
  p = t.transpose();
}

Work orthogonalize_work(Index n, Index r) {
  return pass_work(n * r, 7 + 4 * static_cast<double>(r - 1), 2);
}

bool worth_compressing(Index n, Index m, Index r, double min_compression_rate) {
  if (n == 1 || m == 1) return false;
  const auto compressed = static_cast<double>(std::min({n, m, r}) * (n + m));
  return compressed * min_compression_rate < static_cast<double>(n * m);
}

namespace {

constexpr Phase kCompression = Phase::kCompression;

void charged_orthogonalize(Communicator& comm, Matrix& p, double epsilon) {
  if (comm.carries_data()) orthogonalize(p, epsilon);
  comm.charge(kCompression, orthogonalize_work(p.rows(), p.cols()));
}

// a b, and gradient = p q^T, charged.
Matrix product(Communicator& comm, const Matrix& a, const Matrix& b) {
  Matrix c(a.rows(), b.cols());
  if (comm.carries_data()) c.noalias() = a * b;
  comm.charge(kCompression, gemm_work(a.rows(), a.cols(), b.cols()));
  return c;
}
void decompress(Communicator& comm, const Matrix& p, const Matrix& q, Matrix& gradient) {
  if (comm.carries_data()) gradient.noalias() = p * q.transpose();
  comm.charge(kCompression, gemm_work(p.rows(), p.cols(), q.rows()));
}

}  // namespace

void power_sgd(Communicator& comm, std::span<Matrix* const> gradients,
               std::span<PowerSgdState* const> states, AllReduce all_reduce, double epsilon) {
  std::vector<Matrix> p(gradients.size());
  std::vector<Matrix*> q(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    PowerSgdState& state = *states[i];
    if (state.error) {
      if (comm.carries_data()) state.error->compensate(scalars(*gradients[i]));
      comm.charge(kCompression, pass_work(gradients[i]->size(), 1, 4));
    }
    charged_orthogonalize(comm, state.q, epsilon);
    p[i] = product(comm, *gradients[i], state.q);
    q[i] = &state.q;
  }
  all_reduce_packed(comm, pointers(p), all_reduce);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    charged_orthogonalize(comm, p[i], epsilon);
    *q[i] = weight_gradient(comm, kCompression, *gradients[i], p[i]);
  }
  all_reduce_packed(comm, q, all_reduce);
  scale(comm, q, 1.0 / comm.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    decompress(comm, p[i], *q[i], *gradients[i]);
    if (!states[i]->error) continue;
    if (comm.carries_data()) states[i]->error->subtract(scalars(*gradients[i]));
    comm.charge(kCompression, pass_work(gradients[i]->size(), 1, 3));
  }
}

void authors_power_sgd(Communicator& comm, std::span<Matrix* const> gradients,
                       std::span<PowerSgdState* const> states, double epsilon) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Matrix p = product(comm, *gradients[i], states[i]->q);
    charged_orthogonalize(comm, p, epsilon);
    Matrix q = states[i]->q = weight_gradient(comm, kCompression, *gradients[i], p);
    for (Matrix* factor : {&p, &q}) {
      all_gather_all_reduce(comm, scalars(*factor), Wire::kFp32);
      scale(comm, std::span(&factor, 1), 1.0 / comm.size());
    }
    decompress(comm, p, q, *gradients[i]);
  }
}

namespace {

class PowerSgd final : public Algorithm {
 public:
  explicit PowerSgd(const Options& options)
      : authors_(options.choice("flavour") == "authors"),
        rank_(static_cast<Index>(options.integer("rank", 1, std::numeric_limits<int>::max()))),
        error_feedback_(options.flag("error-feedback") && !authors_),
        warm_start_(options.flag("warm-start")),
        overlap_(options.flag("overlap") && !authors_),
        min_compression_rate_(options.real("min-compression-rate", 0, 1e9)),
        start_step_(options.integer("start-step", 0)),
        epsilon_(options.real("orthogonalization-epsilon", 0, 1)),
        all_reduce_(find_all_reduce(options.choice("exchange"))) {
    const std::string& exchange = options.choice("exchange");
    if (!authors_) return;
    if (exchange != "ring" && exchange != "allgather")  // ring, the default, was not asked for
      throw std::invalid_argument("algorithm powersgd: exchange=" + exchange +
                                  "; allowed with flavour=authors: allgather");
  }

  void step(Worker& worker) override {
    Gradients gradients = local_gradients(worker, 1 / static_cast<double>(worker.batch_size));
    states_.resize(gradients.size());
    std::vector<Matrix*> compressed;
    std::vector<PowerSgdState*> states;
    std::vector<Matrix*> plain;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      Matrix& g = gradients[p];
      if (worker.step >= start_step_ &&
          worth_compressing(g.rows(), g.cols(), rank_, min_compression_rate_)) {
        prepare(worker, p, g);
        compressed.push_back(&g);
        states.push_back(&states_[p]);
      } else {
        plain.push_back(&g);
      }
    }

    Overlap overlap(worker.comm, overlap_);
    overlap.start([&](Communicator& comm) { sum(comm, plain); });
    if (authors_)
      authors_power_sgd(worker.comm, compressed, states, epsilon_);
    else
      power_sgd(worker.comm, compressed, states, all_reduce_, epsilon_);
    overlap.finish();
    if (error_feedback_ && worker.comm.carries_data())
      worker.metrics["residual_norm"] = residual_norm(states);
    scale(worker.comm, plain, 1.0 / worker.comm.size());
    gradwire::apply(worker, gradients);
  }

  double state_bytes() const override {
    return static_cast<double>(state_scalars_) * sizeof(Scalar);
  }

 private:
  static double residual_norm(const std::vector<PowerSgdState*>& states) {
    double squares = 0;
    for (const PowerSgdState* state : states) squares += std::pow(state->error->norm(), 2);
    return std::sqrt(squares);
  }

  void sum(Communicator& comm, const std::vector<Matrix*>& plain) const {
    if (!authors_) return all_reduce_packed(comm, plain, all_reduce_);
    for (Matrix* gradient : plain) all_gather_all_reduce(comm, scalars(*gradient), Wire::kFp32);
  }

  // Makes the state ready for a step: every column of Q that is to start anew or has become zero.
  void prepare(const Worker& worker, std::size_t parameter, const Matrix& gradient) {
    PowerSgdState& state = states_[parameter];
    if (state.q.size() == 0) {
      state.q = Matrix::Zero(gradient.cols(), std::min({gradient.rows(), gradient.cols(), rank_}));
      state_scalars_ += state.q.size();
      if (error_feedback_) {
        state.error.emplace();
        state_scalars_ += gradient.size();  // which has them only where there are values
      }
    }
    if (!worker.comm.carries_data()) return;
    const auto rank = static_cast<std::uint64_t>(authors_ ? worker.comm.rank() : 0);
    for (Index c = 0; c < state.q.cols(); ++c) {
      if (warm_start_ && (state.q.col(c).array() != 0).any()) continue;
      Matrix column(state.q.rows(), 1);
      RandomStream(worker.seed + (rank << 32U), Purpose::kPowerSgdStart,
                   static_cast<std::uint64_t>(worker.step), parameter,
                   static_cast<std::uint64_t>(c))
          .fill_normal(column);
      state.q.col(c) = column;
    }
  }

  bool authors_;
  Index rank_;
  bool error_feedback_;
  bool warm_start_;
  bool overlap_;
  double min_compression_rate_;
  std::int64_t start_step_;
  double epsilon_;
  AllReduce all_reduce_;
  std::vector<PowerSgdState> states_;  // one per parameter, empty where it is not compressed
  Index state_scalars_ = 0;
};

}  // namespace

AlgorithmRow powersgd_row() {
  return {.name = "powersgd",
          .summary = "low-rank gradients by one power iteration per batch, error feedback",
          .options =
              {{"rank", "4", "largest rank of an approximation, at least 1", {}},
               {"flavour",
                "reference",
                "authors: the rank-dAD paper's baseline, all-gathers and no error feedback",
                {"reference", "authors"}},
               {"error-feedback",
                "on",
                "add what was not sent to the next gradient (reference only)",
                {"on", "off"}},
               {"warm-start", "on", "start from the previous step's Q", {"on", "off"}},
               {"min-compression-rate",
                "2",
                "compress where this times r (in + out) is below in x out; 0: every matrix",
                {}},
               {"start-step", "0", "average uncompressed gradients before this step", {}},
               {"orthogonalization-epsilon", "0", "added to the norms in Gram-Schmidt, 0 to 1", {}},
               {"exchange",
                "ring",
                "how factors are summed (flavour=authors: always allgather)",
                {"ring", "halving-doubling", "tree", "allgather", "star", "gloo"}},
               {"overlap",
                "on",
                "sum the uncompressed gradients meanwhile (reference only)",
                {"on", "off"}}},
          .sizes_only = true,
          .make = [](const Options& options) -> std::unique_ptr<Algorithm> {
            return std::make_unique<PowerSgd>(options);
          }};
}

}  // namespace gradwire
