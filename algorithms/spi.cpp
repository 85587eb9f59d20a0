// Works on G / (|A| |D|), so that no square under- or overflows and every threshold is relative.
#include "algorithms/spi.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradwire {

namespace {

using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

// x -> (G^T G) x and x -> G x for the scaled G, in one of two forms: with the Gram matrix A A^T
// (n, n), G^T G x = D^T (A A^T) (D x); or with G itself (in, out).
class ScaledGradient {
 public:
  ScaledGradient(const Matrix& activation, const Matrix& delta, bool use_gram, double inverse_a,
                 double inverse_d)
      : activation_(activation),
        delta_(delta),
        use_gram_(use_gram),
        inverse_a_(static_cast<Scalar>(inverse_a)),
        inverse_d_(static_cast<Scalar>(inverse_d)),
        t_(delta.rows()),
        u_(use_gram ? delta.rows() : activation.cols()) {
    if (use_gram) {
      matrix_.resize(delta.rows(), delta.rows());
      matrix_.noalias() = inverse_a_ * inverse_a_ * activation * activation.transpose();
    } else {
      matrix_.resize(activation.cols(), delta.cols());
      matrix_.noalias() = inverse_a_ * inverse_d_ * activation.transpose() * delta;
    }
  }

  static Work setup_work(const Matrix& activation, const Matrix& delta, bool use_gram) {
    const Index n = delta.rows();
    return use_gram ? gemm_work(n, activation.cols(), n)
                    : gemm_work(activation.cols(), n, delta.cols());
  }
  static Work apply_work(const Matrix& activation, const Matrix& delta, bool use_gram) {
    const Index n = delta.rows();
    const Work once =
        use_gram ? gemm_work(n, delta.cols(), 1) : gemm_work(activation.cols(), delta.cols(), 1);
    return once + once + (use_gram ? gemm_work(n, n, 1) : Work{});
  }
  static Work image_work(const Matrix& activation, const Matrix& delta, bool use_gram) {
    if (!use_gram) return gemm_work(activation.cols(), delta.cols(), 1);
    return gemm_work(delta.rows(), delta.cols(), 1) + gemm_work(delta.rows(), activation.cols(), 1);
  }

  void apply(const Vector& x, Vector& y) {
    if (use_gram_) {
      t_.noalias() = delta_ * x;
      t_ *= inverse_d_ * inverse_d_;
      u_.noalias() = matrix_ * t_;
      y.noalias() = delta_.transpose() * u_;
    } else {
      u_.noalias() = matrix_ * x;
      y.noalias() = matrix_.transpose() * u_;
    }
  }
  void image(const Vector& x, Vector& z) {
    if (use_gram_) {
      t_.noalias() = delta_ * x;
      t_ *= inverse_d_;
      z.noalias() = activation_.transpose() * t_;
      z *= inverse_a_;
    } else {
      z.noalias() = matrix_ * x;
    }
  }

 private:
  const Matrix& activation_;
  const Matrix& delta_;
  bool use_gram_;
  Scalar inverse_a_, inverse_d_;
  Matrix matrix_;
  Vector t_, u_;  // scratch
};

class Spi {
 public:
  Spi(const Matrix& activation, const Matrix& delta, const SpiOptions& options,
      const SpiStart& start)
      : activation_(activation),
        delta_(delta),
        options_(options),
        start_(start),
        limit_(std::min({options.rank, delta.rows(), delta.cols(), activation.cols()})) {}

  SpiResult run() {
    const double a_norm = activation_.cast<double>().norm();
    const double d_norm = delta_.cast<double>().norm();
    result_.work += pass_work(activation_.size() + delta_.size(), 2, 1);
    const double smallest = std::sqrt(static_cast<double>(std::numeric_limits<Scalar>::min()));
    if (!std::isfinite(a_norm) || !std::isfinite(d_norm)) return finish(0, SpiStop::kNotFinite, 0);
    if (limit_ == 0 || a_norm < smallest || d_norm < smallest) return finish(0, SpiStop::kNull, 0);

    use_gram_ = choose_gram();
    ScaledGradient gradient(activation_, delta_, use_gram_, 1 / a_norm, 1 / d_norm);
    result_.work += ScaledGradient::setup_work(activation_, delta_, use_gram_);
    b_.resize(limit_, delta_.cols());
    c_.resize(limit_, activation_.cols());
    x_.resize(delta_.cols());
    y_.resize(delta_.cols());
    z_.resize(activation_.cols());
    overlaps_.resize(limit_);

    SpiStop stop = SpiStop::kMaxRank;
    Index found = 0;
    while (found < limit_ && stop == SpiStop::kMaxRank) {
      stop = component(gradient, found);
      if (stop == SpiStop::kMaxRank) ++found;
    }
    return finish(keep(found, stop), stop, a_norm * d_norm);
  }

  SpiResult run_on_sizes() {
    result_.work += pass_work(activation_.size() + delta_.size(), 2, 1);
    use_gram_ = choose_gram();
    result_.work += ScaledGradient::setup_work(activation_, delta_, use_gram_);
    const bool robust = options_.mode == SpiMode::kRobust;
    const Work normalization = pass_work(delta_.cols(), 3, 3);
    for (Index k = 0; k < limit_; ++k) {
      const Work half = k > 0 ? gemm_work(k, delta_.cols(), 1) : Work{};
      const Work deflation = half + half;
      if (robust) result_.work += deflation + normalization;
      for (int i = 0; i < options_.iterations; ++i) {
        result_.work += ScaledGradient::apply_work(activation_, delta_, use_gram_) + deflation;
        if (robust) result_.work += deflation;
        result_.work += normalization;
      }
      result_.work += ScaledGradient::image_work(activation_, delta_, use_gram_);
      result_.work += pass_work(activation_.cols(), 3, 3);
    }
    b_ = Matrix::Zero(limit_, delta_.cols());
    c_ = Matrix::Zero(limit_, activation_.cols());
    result_.sigma.resize(static_cast<std::size_t>(limit_));
    return finish(keep(limit_, SpiStop::kMaxRank), SpiStop::kMaxRank, 0);
  }

 private:
  using Stop = SpiStop;

  bool choose_gram() const {
    if (options_.mode == SpiMode::kAuthors) return activation_.cols() > delta_.rows();
    const auto flops = [&](bool use_gram) {
      return ScaledGradient::setup_work(activation_, delta_, use_gram).flops +
             static_cast<double>(limit_) *
                 (options_.iterations *
                      ScaledGradient::apply_work(activation_, delta_, use_gram).flops +
                  ScaledGradient::image_work(activation_, delta_, use_gram).flops);
    };
    return flops(true) <= flops(false);
  }

  // y -= sum_{l<k} weight_l b_l (b_l^T x), weight 1 or sigma_l^2.
  void deflate(Index k, const Vector& x, Vector& y, bool by_sigma) {
    if (k == 0) return;
    overlaps_.head(k).noalias() = b_.topRows(k) * x;
    if (by_sigma)
      for (Index l = 0; l < k; ++l) {
        const auto sigma = static_cast<Scalar>(result_.sigma[static_cast<std::size_t>(l)]);
        overlaps_[l] *= sigma * sigma;
      }
    y.noalias() -= b_.topRows(k).transpose() * overlaps_.head(k);
    const Work once = gemm_work(k, y.size(), 1);
    result_.work += once + once;
  }

  // Divides by the norm.  False where nothing above `floor` is left.
  bool normalize(Vector& v, double floor) {
    const Scalar norm = v.norm();
    result_.work += pass_work(v.size(), 3, 3);
    finite_ = finite_ && std::isfinite(norm);
    if (!(norm > floor) || !finite_) return false;
    v /= norm;
    return true;
  }

  // Stores component k, or says why there is none.
  Stop component(ScaledGradient& gradient, Index k) {
    const bool robust = options_.mode == SpiMode::kRobust;
    const auto nothing = [&] { return finite_ ? Stop::kNull : Stop::kNotFinite; };
    const double floor = robust ? static_cast<double>(std::numeric_limits<Scalar>::epsilon()) : 0;
    start_vector_.resize(1, delta_.cols());
    start_(k, start_vector_);
    x_ = start_vector_.row(0).transpose();
    if (robust) {
      deflate(k, x_, x_, false);
      if (!normalize(x_, 0)) return nothing();
    }
    for (int i = 0; i < options_.iterations; ++i) {
      gradient.apply(x_, y_);
      result_.work += ScaledGradient::apply_work(activation_, delta_, use_gram_);
      if (robust) {
        deflate(k, y_, y_, false);
        deflate(k, y_, y_, false);
      } else {
        deflate(k, x_, y_, true);
      }
      if (!normalize(y_, floor)) return nothing();
      x_.swap(y_);
    }
    gradient.image(x_, z_);
    result_.work += ScaledGradient::image_work(activation_, delta_, use_gram_);
    const auto sigma = static_cast<double>(z_.norm());
    if (!normalize(z_, 0)) return nothing();
    if (robust && k > 0 && sigma <= options_.theta * result_.sigma.front()) return Stop::kTheta;
    if (!robust && k >= 2 &&
        (x_.transpose() - b_.row(k - 1)).norm() < options_.tolerance * b_.row(k - 1).norm())
      return Stop::kTolerance;
    b_.row(k) = x_;
    c_.row(k) = z_;
    result_.sigma.push_back(sigma);
    return Stop::kMaxRank;
  }

  // How many of the components found are returned.
  Index keep(Index found, Stop stop) const {
    if (options_.mode == SpiMode::kRobust) return found;
    // The authors' list holds a zero where they stopped, and noise beyond limit_; zeros are never
    // worth returning.
    const Index stored = stop == Stop::kMaxRank ? options_.rank : found + 1;
    const Index useful = stop == Stop::kTolerance ? found - 1 : found;
    return std::clamp<Index>(stored - options_.drop_last, 0, useful);
  }

  SpiResult finish(Index rank, Stop stop, double norms) {
    b_.conservativeResize(rank, delta_.cols());
    c_.conservativeResize(rank, activation_.cols());
    result_.sigma.resize(static_cast<std::size_t>(rank));
    for (Index k = 0; k < rank; ++k) {
      double& sigma = result_.sigma[static_cast<std::size_t>(k)];
      sigma *= norms;
      b_.row(k) *= static_cast<Scalar>(sigma);
    }
    result_.work += pass_work(b_.size(), 1, 2);
    result_.stop = stop;
    result_.factors = {.activation = std::move(c_), .delta = std::move(b_)};
    return std::move(result_);
  }

  const Matrix& activation_;
  const Matrix& delta_;
  const SpiOptions& options_;
  const SpiStart& start_;
  Index limit_;
  bool use_gram_ = true;
  bool finite_ = true;
  SpiResult result_;     // while it runs, sigma is that of the scaled G
  Matrix b_, c_;         // unit rows
  Matrix start_vector_;  // (1, out)
  Vector x_, y_, z_, overlaps_;
};

}  // namespace

SpiResult structured_power_iterations(const Matrix& activation, const Matrix& delta,
                                      const SpiOptions& options, const SpiStart& start) {
  return Spi(activation, delta, options, start).run();
}

SpiResult spi_of_full_rank(const Matrix& activation, const Matrix& delta,
                           const SpiOptions& options) {
  return Spi(activation, delta, options, {}).run_on_sizes();
}

}  // namespace gradwire
