#include "algorithms/replicas.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>

namespace gradwire {

namespace {

constexpr std::int64_t kJoin = -1;  // the step of join()

}  // namespace

// 128 bits: no two different gradients among any number of runs will meet.
template <typename Matrices, typename Get>
Replicas::Digest Replicas::digest(const Matrices& matrices, const Get& get) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const auto& element : matrices) {
    const Matrix& m = get(element);
    XXH3_128bits_update(state.get(), m.data(), static_cast<std::size_t>(m.size()) * sizeof(Scalar));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

void Replicas::advance(std::int64_t step, const Digest& input, Model& model, Optimizer& optimizer,
                       const std::function<void()>& compute) {
  std::unique_lock lock(mutex_);
  Step& now = steps_[step];
  auto update = std::find_if(now.updates.begin(), now.updates.end(), [&](const Update& u) {
    return u.input == input &&
           (step == kJoin || (u.before.parameters.shares_with(model.parameters()) &&
                              u.before.optimizer.shares_with(optimizer.state())));
  });
  const bool mine = update == now.updates.end();
  if (mine)
    update = now.updates.insert(
        update, {.input = input, .before = {model.parameters(), optimizer.state()}, .after = {}});
  else
    progressed_.wait(lock, [&] { return update->progress != Update::kComputing; });

  if (mine || update->progress == Update::kFailed) {
    lock.unlock();
    try {
      compute();
    } catch (...) {
      lock.lock();
      if (mine) update->progress = Update::kFailed;
      progressed_.notify_all();
      throw;
    }
    lock.lock();
    if (mine) {
      update->after = {model.parameters(), optimizer.state()};
      update->progress = Update::kDone;
      progressed_.notify_all();
    }
  } else {
    model.adopt(update->after.parameters);
    optimizer.adopt(update->after.optimizer);
  }
  if (++now.left == workers_) steps_.erase(step);
}

void Replicas::join(Model& model, Optimizer& optimizer) {
  const Digest parameters =
      digest(model.parameters(), [](const Parameter& p) -> const Matrix& { return p.value; });
  advance(kJoin, parameters, model, optimizer, [] {});
}

void Replicas::step(std::int64_t step, Model& model, Optimizer& optimizer,
                    const Gradients& gradients) {
  const Digest input = digest(gradients, [](const Matrix& m) -> const Matrix& { return m; });
  advance(step, input, model, optimizer,
          [&] { optimizer.step(model.mutable_parameters(), gradients); });
}

}  // namespace gradwire
