// What collectives have in common, on communicators that carry data and on those that do not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/codec.h"
#include "algorithms/communicator.h"
#include "algorithms/dry_run.h"

namespace gradwire {

/// Room for `size` elements, none of them there if the communicator carries no data.
template <class T>
std::span<T> room(const Communicator& comm, std::vector<T>& storage, std::size_t size) {
  if (!comm.carries_data()) return absent<T>(size);
  storage.resize(size);
  return storage;
}

void copy_block(const Communicator& comm, std::span<const std::byte> from, std::span<std::byte> to);

/// Adds received numbers to `sum` and charges it.
void add_block(Communicator& comm, Wire wire, std::span<const std::byte> bytes,
               std::span<Scalar> sum);

void wait_all(Communicator& comm, const std::vector<Request>& requests);

/// Where each worker's block begins; the last element is the total.  Throws std::logic_error if
/// the sizes do not fit the workers or this worker's block.
std::vector<std::size_t> block_offsets(const Communicator& comm, std::span<const std::byte> mine,
                                       std::span<const std::size_t> sizes);

}  // namespace gradwire
