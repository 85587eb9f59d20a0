// What load_dataset() chooses from: one loader per file format, the synthetic stand-ins, and what
// the loaders share.  All throw std::invalid_argument naming the file, the place and what is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/dataset.h"

namespace gradwire {

Dataset load_fashion_mnist();
Dataset load_idx(const std::string& name, const std::string& folder);

/// data_batch_{1..5}.bin and test_batch.bin, plain or .gz, pixels 0 to 255.
Dataset load_cifar10(const std::string& name, const std::string& folder);

/// PREFIX_TRAIN.ts and PREFIX_TEST.ts (or the path of either), plain or .gz.  Values as in the
/// file; what is missing, and all from a series' end on, is NaN.
Dataset load_time_series(const std::string& name, const std::string& path);

/// `PATH[,test=FILE][,length=L][,vocabulary=V]`: a file of lines `text TAB label`, or aclImdb's
/// folder {train,test}/{neg,pos}/*.txt.  Vocabulary and length come from what remains of the
/// training part once the fold is held out.
Dataset load_text(const std::string& name, const std::string& arguments, const Fold& fold,
                  std::uint64_t seed);
Dataset load_text_folder(const std::string& name, const std::string& arguments, const Fold& fold,
                         std::uint64_t seed);

Dataset make_synthetic(const std::string& spec, std::uint64_t seed);

/// Which of n training examples a fold holds out, by example.
std::vector<bool> held_out(std::size_t n, const Fold& fold, std::uint64_t seed);

/// Puts a fold of the training part in the place of the test part.
void hold_out(Dataset& data, const Fold& fold, std::uint64_t seed);

/// Gives every channel mean 0 and variance 1 over the training part, the test part by the same
/// numbers; NaN counts nowhere and becomes 0.  Images have planes of channels, sequences steps.
void standardize(Dataset& data);

/// The path, or the path with .gz appended, whichever is a file; else throws naming `folder`.
std::string find_plain_or_gz(const std::string& folder, const std::string& name);

void check_folder(const std::string& folder);

/// For messages: at most 40 characters between quotes, the unprintable as '?'.
std::string in_quotes(std::string_view text);

/// Lines of a text with their numbers; a line's end may be \n or \r\n.  A byte order mark is
/// skipped.
class Lines {
 public:
  explicit Lines(std::string_view text);
  bool next(std::string_view& line);
  std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// Cut at every separator; an empty text is one empty part.
std::vector<std::string_view> cut(std::string_view text, char separator);

}  // namespace gradwire
