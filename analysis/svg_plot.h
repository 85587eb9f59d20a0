// Pictures as SVG text for an HTML page: lines, stacked bars, maps of cells.  What a colour tells,
// a dash, a marker, a hatching or a letter tells as well.  Colours are the page's CSS variables.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gradwire {

struct Axis {
  std::string label;
  bool logarithmic = false;
  std::string (*tick)(double) = nullptr;  ///< a tick's text
  std::vector<double> ticks = {};         ///< empty: chosen
  bool from_zero = true;                  ///< unless logarithmic
};

struct Curve {
  std::string name;
  std::size_t style = 0;  ///< colour, dash and marker
  std::vector<std::pair<double, double>> points;
};

/// A level that curves are to reach, or the line of a perfect result.
struct GuideLine {
  std::string name;
  std::pair<double, double> from, to;
};

struct LinePlot {
  std::string title;
  Axis x, y;
  std::vector<Curve> curves;
  std::vector<GuideLine> guides = {};
};
/// Points that are not finite, or not positive on a logarithmic axis, are left out.
std::string svg(const LinePlot& plot);

struct Bar {
  std::string name;
  std::vector<double> parts;  ///< in the order of StackedBars::parts
  std::string total;          ///< written at its end
};
struct BarGroup {
  std::string name;
  std::vector<Bar> bars;
};
struct StackedBars {
  std::string title;
  Axis x;
  std::vector<std::string> parts;  ///< at most three
  std::vector<BarGroup> groups;
};
std::string svg(const StackedBars& plot);

struct Cell {
  std::string text;
  std::size_t style = 0;
  std::string explanation;  ///< a tooltip
  bool plain = false;       ///< without colour
};
struct CellMap {
  std::string title;
  std::string x_label, y_label;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<Cell>> cells;  ///< by row
};
std::string svg(const CellMap& map);

/// Which style is whose, as HTML.
std::string curve_legend(const std::vector<std::pair<std::string, std::size_t>>& names);

/// The variables and classes that the pictures use, and an SVG with their hatchings.
std::string plot_css();
std::string plot_hatchings();

/// Text as HTML wants it.
std::string escape(const std::string& text);

}  // namespace gradwire
