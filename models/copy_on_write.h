// A value that bit-equal replicas share until one of them writes.
#pragma once

#include <memory>
#include <utility>

namespace gradwire {

/// Copying shares; write() makes the value this holder's own first.  Holders of one value may live
/// on different threads as long as copies of a holder are made and dropped under a lock of theirs.
template <typename T>
class CopyOnWrite {
 public:
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  T& write() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }
  bool shares_with(const CopyOnWrite& other) const { return value_ == other.value_; }

 private:
  std::shared_ptr<T> value_ = std::make_shared<T>();
};

}  // namespace gradwire
