// Sharing what equal replicas have must change nothing but memory and time.
#include "algorithms/replicas.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "algorithms/training.h"

namespace gradwire {
namespace {

struct Replica {
  std::unique_ptr<Model> model =
      make_model({.name = "mlp:3-4-2"}, {.features = 3, .classes = 2}, 1);
  std::unique_ptr<Optimizer> optimizer = make_optimizer({.name = "adam"});
  Gradients gradients = zero_gradients(*model);

  Replica() {
    for (Matrix& g : gradients) g.setConstant(Scalar{0.5F});
  }
};

// Both replicas, each on its own thread as workers are.
void together(Replica& a, Replica& b, const std::function<void(Replica&)>& call) {
  std::thread other([&] { call(b); });
  call(a);
  other.join();
}

TEST_CASE("replicas share parameters while their gradients agree, and part when they differ") {
  Replica a, b, alone;
  Replicas replicas(2);
  together(a, b, [&](Replica& r) { replicas.join(*r.model, *r.optimizer); });
  CHECK(a.model->parameters().shares_with(b.model->parameters()));
  for (int step = 0; step < 3; ++step) {
    if (step == 2) b.gradients[1](0, 0) = 1;
    together(a, b, [&](Replica& r) { replicas.step(step, *r.model, *r.optimizer, r.gradients); });
    alone.optimizer->step(alone.model->mutable_parameters(), alone.gradients);
    CAPTURE(step);
    CHECK(a.model->parameters().shares_with(b.model->parameters()) == (step < 2));
    CHECK(parameter_hash(*a.model) == parameter_hash(*alone.model));
  }
  CHECK(a.model->parameters()[0].value == b.model->parameters()[0].value);
  CHECK(a.model->parameters()[1].value != b.model->parameters()[1].value);
}

TEST_CASE("replicas that start apart stay apart") {
  Replica a, b;
  b.model->mutable_parameters()[0].value(0, 0) += 1;
  Replicas replicas(2);
  together(a, b, [&](Replica& r) { replicas.join(*r.model, *r.optimizer); });
  together(a, b, [&](Replica& r) { replicas.step(0, *r.model, *r.optimizer, r.gradients); });
  CHECK_FALSE(a.model->parameters().shares_with(b.model->parameters()));
  CHECK(a.model->parameters()[0].value(0, 0) + 1 == Approx(b.model->parameters()[0].value(0, 0)));
}

TEST_CASE("a worker that writes its shared parameters leaves the others' alone") {
  Replica a, b;
  Replicas replicas(2);
  together(a, b, [&](Replica& r) { replicas.join(*r.model, *r.optimizer); });
  const Scalar before = a.model->parameters()[0].value(0, 0);
  b.model->mutable_parameters()[0].value(0, 0) = before + 1;
  CHECK(a.model->parameters()[0].value(0, 0) == before);
}

TEST_CASE("a replica that has written its parameters steps from them, not from the others'") {
  Replica a, b;
  Replicas replicas(2);
  together(a, b, [&](Replica& r) { replicas.join(*r.model, *r.optimizer); });
  b.model->mutable_parameters()[0].value(0, 0) += 1;
  together(a, b, [&](Replica& r) { replicas.step(0, *r.model, *r.optimizer, r.gradients); });
  CHECK(a.model->parameters()[0].value(0, 0) + 1 == Approx(b.model->parameters()[0].value(0, 0)));
}

TEST_CASE("an update that fails does not leave the other workers waiting") {
  Replica a, b;
  a.gradients.pop_back();
  b.gradients.pop_back();
  Replicas replicas(2);
  together(a, b, [&](Replica& r) { replicas.join(*r.model, *r.optimizer); });
  std::atomic<int> failures = 0;
  together(a, b, [&](Replica& r) {
    try {
      replicas.step(0, *r.model, *r.optimizer, r.gradients);
    } catch (const std::logic_error&) {
      ++failures;
    }
  });
  CHECK(failures == 2);
}

}  // namespace
}  // namespace gradwire
