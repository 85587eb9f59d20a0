// Distributed SGD: the exact mean gradient on every worker (synchronous data parallelism; the
// buckets are those of "PyTorch Distributed", Li et al., VLDB 2020).
//
// form=ddp: gradients fill buckets in the order in which back-propagation yields them (last layer
// first, bias before weight).  A bucket closes as soon as it holds at least its limit
// (first-bucket-bytes, then bucket-bytes; arithmetic type) and is summed by one all-reduce: on the
// second lane while back-propagation goes on (overlap=on), or after it.
// form=authors: the rank-dAD authors' baseline.  After back-propagation one blocking ring
// all-gather per parameter, in parameter order, then a sum in rank order on every worker.
// Either way gradients are divided by the global batch before they are sent, as DDP does, which
// keeps a 16-bit wire in range.
//
// Per worker and step, with N workers, d parameters of s bytes each on the wire in K buckets
// (form=authors: K = number of parameters); ring and halving-doubling up to the rounding of chunks:
//   ring              2(N-1) K messages    2(N-1)/N d s bytes
//   halving-doubling  2 log2(N) K          2(N-1)/N d s        (N a power of two)
//   tree              (2c + 1) K           (2c + 1) d s        (c children; worker 0: c K, c d s)
//   star              K                    d s                 (worker 0: (N-1) K, (N-1) d s)
//   allgather         (N-1) K              (N-1) d s
//   gloo              see gloo_collectives.h; fp32 only
// State: none.  Flops: the weight gradients' 2 B in out each, and the collective's additions.
#include <stdexcept>
#include <utility>

#include "algorithms/gradient_parts.h"

namespace gradwire {

namespace {

using Bucket = std::vector<Matrix*>;

// Collects parts and hands them over, several at a time.
class Bucketing {
 public:
  Bucketing(std::size_t first_limit, std::size_t limit, std::function<void(Bucket)> close)
      : limit_(first_limit), next_limit_(limit), close_(std::move(close)) {}

  void add(Matrix& part) {
    bucket_.push_back(&part);
    bytes_ += scalars(part).size_bytes();
    if (bytes_ >= limit_) close();
  }
  void close() {
    if (bucket_.empty()) return;
    close_(std::exchange(bucket_, {}));
    bytes_ = 0;
    limit_ = next_limit_;
  }

 private:
  std::size_t limit_;
  std::size_t next_limit_;
  std::function<void(Bucket)> close_;
  Bucket bucket_;
  std::size_t bytes_ = 0;
};

double mean_factor(const Worker& worker) { return 1 / static_cast<double>(worker.global_batch); }

class Ddp final : public Algorithm {
 public:
  explicit Ddp(const Options& options)
      : overlap_(options.flag("overlap")),
        all_reduce_(find_all_reduce(options.choice("exchange"))),
        wire_(parse_wire(options.choice("wire"))),
        first_limit_(static_cast<std::size_t>(options.integer("first-bucket-bytes", 1))),
        limit_(static_cast<std::size_t>(options.integer("bucket-bytes", 1))) {}

  void step(Worker& worker) override {
    Overlap overlap(worker.comm, overlap_);
    Bucketing buckets(first_limit_, limit_, [&](Bucket bucket) {
      overlap.start([this, parts = std::move(bucket)](Communicator& comm) {
        all_reduce_packed(comm, parts, all_reduce_, wire_);
      });
    });
    const Gradients gradients = local_gradients(
        worker, mean_factor(worker), [&](int /*parameter*/, Matrix& part) { buckets.add(part); });
    buckets.close();
    overlap.finish();
    gradwire::apply(worker, gradients);
  }

 private:
  bool overlap_;
  AllReduce all_reduce_;
  Wire wire_;
  std::size_t first_limit_;
  std::size_t limit_;
};

class AuthorsDsgd final : public Algorithm {
 public:
  explicit AuthorsDsgd(const Options& options) : wire_(parse_wire(options.choice("wire"))) {
    const std::string& exchange = options.choice("exchange");
    if (exchange != "ring" && exchange != "allgather")  // ring, the default, was not asked for
      throw std::invalid_argument("algorithm dsgd: exchange=" + exchange +
                                  "; allowed with form=authors: allgather");
  }

  void step(Worker& worker) override {
    Gradients gradients = local_gradients(worker, mean_factor(worker));
    for (Matrix& gradient : gradients) all_gather_all_reduce(worker.comm, scalars(gradient), wire_);
    gradwire::apply(worker, gradients);
  }

 private:
  Wire wire_;
};

std::unique_ptr<Algorithm> make(const Options& options) {
  if (options.choice("form") == "authors") return std::make_unique<AuthorsDsgd>(options);
  return std::make_unique<Ddp>(options);
}

}  // namespace

AlgorithmRow dsgd_row() {
  return {
      .name = "dsgd",
      .summary = "exact mean gradient: all-reduce in buckets, or the rank-dAD authors' all-gather",
      .options =
          {{"exchange",
            "ring",
            "how buckets are summed (form=authors: always allgather)",
            {"ring", "halving-doubling", "tree", "allgather", "star", "gloo"}},
           {"wire", "fp32", "number format on the wire", {"fp32", "fp16", "bf16"}},
           {"form",
            "ddp",
            "ddp: buckets; authors: one blocking all-gather per parameter after back-propagation",
            {"ddp", "authors"}},
           {"overlap", "on", "sum buckets while back-propagation goes on", {"on", "off"}},
           {"bucket-bytes", "26214400", "bytes of gradients that close a bucket, at least 1", {}},
           {"first-bucket-bytes", "1048576", "the same for the first bucket", {}}},
      .exact = true,
      .sizes_only = true,
      .make = make};
}

}  // namespace gradwire
