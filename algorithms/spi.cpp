#include "algorithms/spi.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradwire {

namespace {

// y = x (G^T G)... in the authors' notation (M M^T) x with M = G^T (out, in): the operator whose
// eigenvectors are the b_k, in whichever of three forms costs least, counted with everything that
// follows from the choice.
class Operator {
 public:
  Operator(const Matrix& activation, const Matrix& delta, Index rank, int iterations)
      : activation_(activation), delta_(delta) {
    const auto n = static_cast<double>(delta.rows());
    const auto m = static_cast<double>(delta.cols());
    const auto p = static_cast<double>(activation.cols());
    const double applications = static_cast<double>(rank) * iterations;
    const double gram = n * n * p + applications * (4 * n * m + 2 * n * n);
    const double full = 2 * n * m * p + applications * 4 * m * p;
    const double factored = applications * 4 * n * (m + p);
    if (full < gram && full < factored) {
      form_ = Form::kFull;
      gradient_.noalias() = activation.transpose() * delta;
      work_ += gemm_work(activation.cols(), activation.rows(), delta.cols());
    } else if (gram <= factored) {
      form_ = Form::kGram;
      gram_.noalias() = activation * activation.transpose();
      work_ += gemm_work(activation.rows(), activation.cols(), activation.rows());
    }
  }

  // y (1, out) = x G^T G.
  void apply(const Matrix& x, Matrix& y) {
    if (form_ == Form::kFull) {
      times_gradient(x, z_);
      y.noalias() = z_ * gradient_;
      work_ += gemm_work(1, gradient_.rows(), gradient_.cols());
      return;
    }
    t_.noalias() = x * delta_.transpose();
    if (form_ == Form::kGram) {
      u_.noalias() = t_ * gram_;
      work_ += gemm_work(1, gram_.rows(), gram_.cols());
    } else {
      z_.noalias() = t_ * activation_;
      u_.noalias() = z_ * activation_.transpose();
      work_ += gemm_work(2, activation_.rows(), activation_.cols());
    }
    y.noalias() = u_ * delta_;
    work_ += gemm_work(2, delta_.rows(), delta_.cols());
  }

  // z (1, in) = b G^T.
  void times_gradient(const Matrix& b, Matrix& z) {
    if (form_ == Form::kFull) {
      z.noalias() = b * gradient_.transpose();
      work_ += gemm_work(1, gradient_.cols(), gradient_.rows());
      return;
    }
    t_.noalias() = b * delta_.transpose();
    z.noalias() = t_ * activation_;
    work_ += gemm_work(1, delta_.cols(), delta_.rows());
    work_ += gemm_work(1, activation_.rows(), activation_.cols());
  }

  void spend(const Work& work) { work_ += work; }
  const Work& work() const { return work_; }

 private:
  enum class Form { kFactored, kGram, kFull };
  Form form_ = Form::kFactored;
  const Matrix& activation_;
  const Matrix& delta_;
  Matrix gram_;      // (rows, rows): A A^T
  Matrix gradient_;  // (in, out)
  Matrix t_, u_, z_;
  Work work_;
};

double norm(const Matrix& x) { return static_cast<double>(x.norm()); }

// Removes from x its projection on the orthonormal rows of `basis`.
void project_out(const Matrix& basis, Index rows, Matrix& x, Operator& op) {
  if (rows == 0) return;
  Matrix coefficients(1, rows);
  coefficients.noalias() = x * basis.topRows(rows).transpose();
  x.noalias() -= coefficients * basis.topRows(rows);
  op.spend(gemm_work(2, rows, x.cols()));
}

Factors first_rows(const Matrix& left, const Matrix& right, Index rows) {
  return {left.topRows(rows), right.topRows(rows)};
}

SpiResult robust(const Matrix& activation, const Matrix& delta, const SpiOptions& options,
                 const SpiStart& start) {
  const Index m = delta.cols();
  const Index p = activation.cols();
  const Index rank = std::min({options.rank, m, p, delta.rows()});
  Operator op(activation, delta, rank, options.iterations);
  const double scale = norm(delta) * norm(activation);
  const double noise = static_cast<double>(std::numeric_limits<Scalar>::epsilon()) * scale * scale;
  op.spend(pass_work(delta.size() + activation.size(), 2, 1));

  Matrix basis(rank, m);  // b_k
  SpiResult result{.factors = {Matrix(rank, m), Matrix(rank, p)}, .sigma = {}, .work = {}};
  Matrix x(1, m), y(1, m), z(1, p);
  const auto component = [&](Index k) {
    start(k, x);
    project_out(basis, k, x, op);
    const double length = norm(x);
    if (!(length > 0)) return false;
    x /= static_cast<Scalar>(length);
    for (int j = 0; j < options.iterations; ++j) {
      op.apply(x, y);
      project_out(basis, k, y, op);
      project_out(basis, k, y, op);
      const double grown = norm(y);
      if (!(grown > noise) || !std::isfinite(grown)) return false;
      x = y / static_cast<Scalar>(grown);
      op.spend(pass_work(m, 3, 3));
    }
    op.times_gradient(x, z);
    const double sigma = norm(z);
    if (!(sigma > 0) || !std::isfinite(sigma)) return false;
    if (k > 0 && sigma <= options.theta * result.sigma.front()) return false;
    basis.row(k) = x;
    result.factors.left.row(k) = static_cast<Scalar>(sigma) * x;
    result.factors.right.row(k) = z / static_cast<Scalar>(sigma);
    result.sigma.push_back(sigma);
    op.spend(pass_work(m + p, 2, 3));
    return true;
  };
  Index found = 0;
  while (found < rank && component(found)) ++found;
  result.factors = first_rows(result.factors.left, result.factors.right, found);
  result.work = op.work();
  return result;
}

SpiResult authors(const Matrix& activation, const Matrix& delta, const SpiOptions& options,
                  const SpiStart& start) {
  const Index m = delta.cols();
  const Index p = activation.cols();
  Operator op(activation, delta, options.rank, options.iterations);
  Matrix b = Matrix::Zero(options.rank, m);
  Matrix left = Matrix::Zero(options.rank, m);
  Matrix right = Matrix::Zero(options.rank, p);
  std::vector<double> sigma;
  Matrix x(1, m), y(1, m), z(1, p);
  for (Index k = 0; k < options.rank; ++k) {
    start(k, x);
    for (int j = 0; j < options.iterations; ++j) {
      op.apply(x, y);
      for (Index l = 0; l < k; ++l) {
        const double s = sigma[static_cast<std::size_t>(l)];
        y -= static_cast<Scalar>(s * s) * b.row(l).dot(x.row(0)) * b.row(l);
      }
      op.spend(pass_work(k * m, 4, 3));
      x = y / static_cast<Scalar>(norm(y));
      op.spend(pass_work(m, 3, 3));
    }
    op.times_gradient(x, z);
    const double s = norm(z);
    sigma.push_back(0);
    if (!(s > 0) || !std::isfinite(s)) break;
    const auto distance = [&] { return norm(Matrix(x - b.row(k - 1))) / norm(b.row(k - 1)); };
    if (k >= 2 && distance() < options.tolerance) {
      left.row(k - 1).setZero();
      right.row(k - 1).setZero();
      sigma[static_cast<std::size_t>(k) - 1] = 0;
      break;
    }
    b.row(k) = x;
    left.row(k) = static_cast<Scalar>(s) * x;
    right.row(k) = z / static_cast<Scalar>(s);
    sigma.back() = s;
  }
  auto kept = static_cast<Index>(sigma.size()) - options.drop_last;
  if (options.drop_last == 0)  // ours: what is zero need not travel
    while (kept > 0 && sigma[static_cast<std::size_t>(kept) - 1] == 0) --kept;
  kept = std::max<Index>(kept, 0);
  sigma.resize(static_cast<std::size_t>(kept));
  return {.factors = first_rows(left, right, kept), .sigma = sigma, .work = op.work()};
}

}  // namespace

SpiResult structured_power_iterations(const Matrix& activation, const Matrix& delta,
                                      const SpiOptions& options, const SpiStart& start) {
  return options.authors ? authors(activation, delta, options, start)
                         : robust(activation, delta, options, start);
}

}  // namespace gradwire
