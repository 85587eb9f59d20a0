#include "algorithms/sparse_codec.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace gradwire;

namespace {

SparseList random_list(std::size_t d, std::size_t k, std::uint64_t seed) {
  SparseList list{random_k(d, k, RandomStream(seed, Purpose::kSelection)).indices, {}};
  for (const auto i : list.indices) list.values.push_back(static_cast<Scalar>(i) - Scalar{0.5});
  return list;
}

constexpr IndexCode kAll[] = {IndexCode::kInt32, IndexCode::kInt64, IndexCode::kBitmap,
                              IndexCode::kDelta, IndexCode::kSmallest};

std::size_t index_bytes(IndexCode code, const SparseList& list, std::size_t d) {
  return encode(code, list, d).size() - list.values.size() * sizeof(Scalar);
}

}  // namespace

TEST_CASE("Every sparse code gives back what it was given", "[sparse_codec]") {
  for (const IndexCode code : kAll)
    for (const std::size_t d : {1U, 8U, 9U, 100U, 5000U})
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}, d / 7, d - 1, d}) {
        const SparseList list = random_list(d, k, d + k);
        const SparseList back = decode(code, encode(code, list, d), d);
        CHECK(back.indices == list.indices);
        CHECK(back.values == list.values);
      }
}

TEST_CASE("Sparse codes survive the extreme coordinates", "[sparse_codec]") {
  constexpr std::size_t kLargest = std::size_t{1} << 31U;
  const SparseList list{{0, 1, 0x7fffffffU}, {1, 2, 3}};
  for (const IndexCode code :
       {IndexCode::kInt32, IndexCode::kInt64, IndexCode::kDelta, IndexCode::kSmallest})
    CHECK(decode(code, encode(code, list, kLargest), kLargest).indices == list.indices);
  CHECK_THROWS_AS(encode(IndexCode::kInt32, list, kLargest + 1), std::invalid_argument);
}

TEST_CASE("Indices take the bytes that their code promises", "[sparse_codec]") {
  const SparseList list = random_list(10000, 100, 1);
  CHECK(index_bytes(IndexCode::kInt32, list, 10000) == 400);
  CHECK(index_bytes(IndexCode::kInt64, list, 10000) == 800);
  CHECK(index_bytes(IndexCode::kBitmap, list, 10000) == 1250);
  // Gaps of 3 and 0 with parameter 0: 1110 0, 5 bits, after 5 bytes of header.
  CHECK(index_bytes(IndexCode::kDelta, {{3, 4}, {1, 1}}, 10000) == 6);
}

TEST_CASE("Delta codes need about log2(d / k) + 1.5 bits an index", "[sparse_codec]") {
  for (const std::size_t k : {1000U, 10000U}) {
    const double bits =
        8 *
        static_cast<double>(index_bytes(IndexCode::kDelta, random_list(1000000, k, k), 1000000)) /
        static_cast<double>(k);
    CHECK(bits == Approx(std::log2(1e6 / static_cast<double>(k)) + 1.5).margin(0.2));
  }
}

TEST_CASE("The smallest code is the smallest one plus its name", "[sparse_codec]") {
  for (const std::size_t k : {0U, 1U, 10U, 300U, 2500U, 4999U, 5000U}) {
    const SparseList list = random_list(5000, k, k);
    const std::size_t best = std::min({index_bytes(IndexCode::kInt32, list, 5000),
                                       index_bytes(IndexCode::kBitmap, list, 5000),
                                       index_bytes(IndexCode::kDelta, list, 5000)});
    CHECK(index_bytes(IndexCode::kSmallest, list, 5000) == best + 1);
  }
}

TEST_CASE("Malformed sparse lists are refused", "[sparse_codec]") {
  const SparseList list = random_list(50, 10, 1);
  for (const IndexCode code : kAll) {
    auto bytes = encode(code, list, 50);
    bytes.push_back(std::byte{0});
    CHECK_THROWS_AS(decode(code, bytes, 50), std::logic_error);
    CHECK_THROWS_AS(decode(code, std::span(bytes).first(bytes.size() - 2), 50), std::logic_error);
  }
  const auto with_indices = [](Coordinates indices) {
    return encode(IndexCode::kInt32, {std::move(indices), {1, 1}}, 100);
  };
  CHECK_NOTHROW(decode(IndexCode::kInt32, with_indices({3, 99}), 100));
  CHECK_THROWS_AS(decode(IndexCode::kInt32, with_indices({3, 99}), 99), std::logic_error);
  CHECK_THROWS_AS(decode(IndexCode::kInt32, with_indices({5, 5}), 100), std::logic_error);
  CHECK_THROWS_AS(decode(IndexCode::kInt32, with_indices({9, 5}), 100), std::logic_error);
  CHECK_THROWS_AS(decode(IndexCode::kDelta, std::vector<std::byte>(4), 100), std::logic_error);
  CHECK_THROWS_AS(decode(IndexCode::kDelta, std::vector<std::byte>(9, std::byte{0xff}), 100),
                  std::logic_error);
  CHECK_THROWS_AS(decode(IndexCode::kSmallest, std::vector<std::byte>(1, std::byte{4}), 100),
                  std::logic_error);
  CHECK_THROWS_AS(parse_index_code("int16"), std::invalid_argument);
}
