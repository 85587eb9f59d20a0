// What can be read of the pictures: ticks apart from each other, names that fit.
#include "analysis/svg_plot.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "analysis/units.h"

namespace gradwire {
namespace {

struct Text {
  double x, y;
  std::string anchor, text;
  double width() const { return 6.2 * static_cast<double>(text.size()); }  // at 11 px
  double left() const {
    return anchor == "start" ? x : anchor == "end" ? x - width() : x - width() / 2;
  }
};

std::vector<Text> texts(const std::string& svg) {
  const std::regex pattern(
      "<text x=\"([0-9.-]+)\" y=\"([0-9.-]+)\" text-anchor=\"([a-z]+)\">([^<]*)<");
  std::vector<Text> all;
  for (std::sregex_iterator i(svg.begin(), svg.end(), pattern), end; i != end; ++i)
    all.push_back({std::stod((*i)[1]), std::stod((*i)[2]), (*i)[3], (*i)[4]});
  return all;
}

// Those in one line, from left to right.
std::vector<Text> ticks_below(const std::string& svg, double (*parse)(const std::string&)) {
  std::vector<Text> ticks;
  for (const Text& text : texts(svg))
    if (text.anchor == "middle" && text.y == 271 && parse(text.text) >= 0) ticks.push_back(text);
  std::sort(ticks.begin(), ticks.end(), [](const Text& a, const Text& b) { return a.x < b.x; });
  return ticks;
}

std::string plot_from(double low, double high) {
  return svg(
      LinePlot{.title = "t",
               .x = {.label = "bandwidth", .logarithmic = true, .tick = format_bandwidth},
               .y = {.label = "", .logarithmic = true, .tick = format_time},
               .curves = {{.name = "c", .style = 0, .points = {{low, 0.021}, {high, 0.047}}}}});
}

TEST_CASE("texts below an axis are apart from each other and within the picture") {
  for (const double high : {1.5e8, 4e8, 1e9, 1e10, 1e11, 1e14}) {
    const auto ticks = ticks_below(plot_from(1e8, high), [](const std::string& text) {
      return text.ends_with("bit/s") ? 1.0 : -1.0;
    });
    CAPTURE(high);
    REQUIRE(ticks.size() >= 2);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      CHECK(ticks[i].left() >= 0);
      CHECK(ticks[i].left() + ticks[i].width() <= 460.1);
      if (i > 0) CHECK(ticks[i].left() > ticks[i - 1].left() + ticks[i - 1].width());
    }
  }
}

TEST_CASE("a logarithmic axis shorter than its round numbers has ticks all the same") {
  int ticks = 0;  // of the vertical axis, from 21 to 47 ms
  for (const Text& text : texts(plot_from(1e8, 1e9)))
    ticks += text.anchor == "end" && text.text.ends_with(" ms") ? 1 : 0;
  CHECK(ticks >= 2);
}

TEST_CASE("an axis that does not start at zero shows its values apart, with no tick at -0") {
  const auto ticks = [](bool from_zero) {
    std::vector<std::string> found;
    const std::string picture =
        svg(LinePlot{.title = "t",
                     .x = {.label = "", .logarithmic = true, .tick = format_time},
                     .y = {.label = "", .tick = format_time, .from_zero = from_zero},
                     .curves = {{.name = "c", .style = 0, .points = {{1, 0.91}, {2, 0.98}}}}});
    for (const Text& text : texts(picture))
      if (text.anchor == "end") found.push_back(text.text);
    return found;
  };
  CHECK(ticks(false).size() >= 3);
  CHECK(ticks(false).front() != "0 s");
  CHECK(ticks(true).front() == "0 s");
}

TEST_CASE("a bar's name fits beside it; the longest are shortened and told in full by a tooltip") {
  for (const std::size_t length : {5, 40, 59, 120}) {
    const std::string name(length, 'n');
    const std::string picture =
        svg(StackedBars{.title = "t",
                        .x = {.label = "time", .tick = format_time},
                        .parts = {"compute"},
                        .groups = {{.name = "g", .bars = {{name, {1.0}, "1 s"}}}}});
    CHECK_THAT(picture, Catch::Contains("<title>" + name + "</title>"));
    for (const Text& text : texts(picture)) CHECK(text.left() >= 0);
  }
}

}  // namespace
}  // namespace gradwire
