// What load_dataset() chooses from: one loader per file format, and the synthetic stand-ins.  All
// throw std::invalid_argument naming the file, the place and what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/dataset.h"

namespace gradwire {

Dataset load_fashion_mnist();
Dataset load_idx(const std::string& name, const std::string& folder);

Dataset make_synthetic(const std::string& spec, std::uint64_t seed);

}  // namespace gradwire
