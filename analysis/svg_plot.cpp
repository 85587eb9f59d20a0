#include "analysis/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace gradwire {

namespace {

constexpr double kWidth = 460, kHeight = 300;
constexpr double kLeft = 72, kRight = 14, kTop = 30, kBottom = 44;
constexpr std::size_t kStyles = 8;
constexpr std::array<const char*, kStyles> kDashes{"", "7 3", "2 3", "9 3 2 3",
                                                   "", "5 2", "1 4", "12 4"};

std::string px(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", x);
  return text.data();
}

std::string style_class(std::size_t style) {
  return std::string("s").append(std::to_string(style % kStyles));
}

// Colours come round after kStyles, then with other markers and dashes.
std::size_t shape(std::size_t style) { return (style + style / kStyles) % kStyles; }

std::string attribute(const std::string& name, const std::string& value) {
  return std::string(" ").append(name).append("=\"").append(value).append("\"");
}

std::string text_at(double x, double y, const std::string& text, const std::string& anchor,
                    const std::string& more = "") {
  return "<text" + attribute("x", px(x)) + attribute("y", px(y)) +
         attribute("text-anchor", anchor) + more + ">" + escape(text) + "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2, const std::string& kind) {
  return "<line" + attribute("class", kind) + attribute("x1", px(x1)) + attribute("y1", px(y1)) +
         attribute("x2", px(x2)) + attribute("y2", px(y2)) + "/>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& more) {
  return "<rect" + attribute("x", px(x)) + attribute("y", px(y)) + attribute("width", px(width)) +
         attribute("height", px(height)) + more;
}

std::string open_svg(const std::string& title, double width, double height,
                     const std::string& more = "") {
  return "<svg" + more + attribute("viewBox", "0 0 " + px(width) + " " + px(height)) +
         attribute("width", px(width)) + attribute("height", px(height)) +
         attribute("role", "img") + attribute("aria-label", escape(title)) + ">\n" +
         text_at(width / 2, 16, title, "middle", attribute("class", "title"));
}

double text_width(const std::string& text) { return 6.2 * static_cast<double>(text.size()); }

// At most `most` wide, what is left out from the middle.
std::string shortened(const std::string& text, double most) {
  const auto length = static_cast<std::size_t>(most / text_width("x"));
  if (text.size() <= length) return text;
  const std::size_t head = length * 2 / 3;
  return text.substr(0, head) + "..." + text.substr(text.size() - (length - head - 3));
}

// Round numbers, about five of them.
std::vector<double> linear_ticks(double low, double high) {
  const double raw = (high - low) / 5;
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * decade;
  for (const double multiple : {5.0, 2.0, 1.0})
    if (multiple * decade >= raw) step = multiple * decade;
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); ++i)
    ticks.push_back(i * step + 0.0);  // never -0
  return ticks;
}

// Decades, with 2 and 5 between if they are few; of a short axis round numbers.
std::vector<double> logarithmic_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) < 2.5;
  for (int e = static_cast<int>(std::floor(std::log10(low))); std::pow(10, e) <= high * 1.001; ++e)
    for (const double multiple : {1.0, 2.0, 5.0}) {
      const double tick = multiple * std::pow(10, e);
      if ((multiple == 1 || few) && tick >= low * 0.999 && tick <= high * 1.001)
        ticks.push_back(tick);
    }
  return ticks.size() > 1 ? ticks : linear_ticks(low, high);
}

bool is_decade(double tick) {
  const double exponent = std::log10(tick);
  return std::abs(exponent - std::round(exponent)) < 1e-9;
}

// From values to pixels.
class Scale {
 public:
  Scale(const Axis& axis, std::vector<double> values, double begin, double end)
      : axis_(axis), begin_(begin), end_(end) {
    std::erase_if(values, [&](double v) { return !usable(v); });
    if (values.empty()) values = {1};
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    low_ = axis.logarithmic || !axis.from_zero ? *low : std::min(0.0, *low);
    high_ = *high;
    if (!(high_ > low_)) {
      high_ = axis.logarithmic ? 2 * low_ : low_ + 1;
      if (axis.logarithmic) low_ /= 2;
    }
    ticks_ = !axis.ticks.empty() ? axis.ticks
             : axis.logarithmic  ? logarithmic_ticks(low_, high_)
                                 : linear_ticks(low_, high_);
  }
  bool usable(double v) const { return std::isfinite(v) && (!axis_.logarithmic || v > 0); }
  double at(double v) const {
    const double share = axis_.logarithmic ? std::log(v / low_) / std::log(high_ / low_)
                                           : (v - low_) / (high_ - low_);
    return begin_ + share * (end_ - begin_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string tick_text(double v) const { return axis_.tick(v); }

 private:
  const Axis& axis_;
  double begin_, end_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

// The texts below the ticks, as many as have room, decades first.
std::string tick_texts(const Axis& axis, const Scale& x) {
  constexpr double kGap = 8;
  std::string text;
  std::vector<std::pair<double, double>> taken;
  for (const bool decades : {true, false})
    for (const double tick : x.ticks()) {
      if ((axis.logarithmic && is_decade(tick)) != decades) continue;
      const double half = text_width(x.tick_text(tick)) / 2;
      const double middle = std::min(x.at(tick), kWidth - half);
      const auto meets = [&](const auto& other) {
        return middle - half < other.second + kGap && other.first < middle + half + kGap;
      };
      if (std::any_of(taken.begin(), taken.end(), meets)) continue;
      taken.emplace_back(middle - half, middle + half);
      text += text_at(middle, kHeight - kBottom + 15, x.tick_text(tick), "middle");
    }
  return text;
}

std::string axes(const LinePlot& plot, const Scale& x, const Scale& y) {
  std::string text;
  for (const double tick : x.ticks())
    text += line_between(x.at(tick), kTop, x.at(tick), kHeight - kBottom, "grid");
  text += tick_texts(plot.x, x);
  for (const double tick : y.ticks()) {
    text += line_between(kLeft, y.at(tick), kWidth - kRight, y.at(tick), "grid");
    text += text_at(kLeft - 5, y.at(tick) + 4, y.tick_text(tick), "end");
  }
  text += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, plot.x.label, "middle");
  const std::string turn = "rotate(-90 12 " + px(kHeight / 2) + ")";
  return text + text_at(12, kHeight / 2, plot.y.label, "middle", attribute("transform", turn));
}

// A shape of its own for each style.
std::string marker(double x, double y, std::size_t style) {
  const auto polygon = [&](const std::vector<std::pair<double, double>>& corners) {
    std::string points;
    for (const auto& [dx, dy] : corners) points += px(x + dx) + "," + px(y + dy) + " ";
    return "<polygon" + attribute("class", "mark " + style_class(style)) +
           attribute("points", points) + "/>";
  };
  switch (shape(style)) {
    case 0:
      return "<circle" + attribute("class", "mark " + style_class(style)) + attribute("cx", px(x)) +
             attribute("cy", px(y)) + attribute("r", "3.5") + "/>";
    case 1:
      return polygon({{-3.2, -3.2}, {3.2, -3.2}, {3.2, 3.2}, {-3.2, 3.2}});
    case 2:
      return polygon({{0, -4.5}, {4.2, 3.2}, {-4.2, 3.2}});
    case 3:
      return polygon({{0, -4.8}, {4.8, 0}, {0, 4.8}, {-4.8, 0}});
    case 4:
      return polygon({{0, 4.5}, {4.2, -3.2}, {-4.2, -3.2}});
    case 5:
      return polygon({{-4, -1.3},
                      {-1.3, -1.3},
                      {-1.3, -4},
                      {1.3, -4},
                      {1.3, -1.3},
                      {4, -1.3},
                      {4, 1.3},
                      {1.3, 1.3},
                      {1.3, 4},
                      {-1.3, 4},
                      {-1.3, 1.3},
                      {-4, 1.3}});
    case 6:
      return polygon({{-4.5, -2}, {4.5, -2}, {4.5, 2}, {-4.5, 2}});
    default:
      return polygon({{-2, -4.5}, {2, -4.5}, {2, 4.5}, {-2, 4.5}});
  }
}

std::string polyline(const std::string& points, std::size_t style) {
  return "<polyline" + attribute("class", "curve " + style_class(style)) +
         attribute("stroke-dasharray", kDashes[shape(style)]) + attribute("points", points) +
         "/>\n";
}

std::string draw(const Curve& curve, const Scale& x, const Scale& y) {
  constexpr std::size_t kMaxMarkers = 16;
  std::string points;
  std::string markers;
  const std::size_t every = curve.points.size() / kMaxMarkers + 1;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [px_value, py_value] = curve.points[i];
    if (!x.usable(px_value) || !y.usable(py_value)) continue;
    points += px(x.at(px_value)) + "," + px(y.at(py_value)) + " ";
    if (i % every == 0) markers += marker(x.at(px_value), y.at(py_value), curve.style);
  }
  return "<g><title>" + escape(curve.name) + "</title>" + polyline(points, curve.style) + markers +
         "</g>\n";
}

}  // namespace

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string svg(const LinePlot& plot) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const Curve& curve : plot.curves)
    for (const auto& [x, y] : curve.points) {
      xs.push_back(x);
      ys.push_back(y);
    }
  for (const GuideLine& guide : plot.guides)
    ys.insert(ys.end(), {guide.from.second, guide.to.second});
  const Scale x(plot.x, xs, kLeft + 8, kWidth - kRight - 8);
  const Scale y(plot.y, ys, kHeight - kBottom, kTop + 6);
  std::string text =
      open_svg(plot.title, kWidth, kHeight, attribute("class", "lines")) + axes(plot, x, y);
  for (const GuideLine& g : plot.guides) {
    text += line_between(x.at(g.from.first), y.at(g.from.second), x.at(g.to.first),
                         y.at(g.to.second), "guide");
    text += text_at(x.at(g.to.first) - 3, y.at(g.to.second) - 4, g.name, "end");
  }
  for (const Curve& curve : plot.curves) text += draw(curve, x, y);
  return text + "</svg>\n";
}

std::string svg(const StackedBars& plot) {
  constexpr double kRow = 17, kBars = 380, kTotals = 70, kMostNames = 400;
  double names = 100;
  double rows = 0;
  std::vector<double> totals{0};
  for (const BarGroup& group : plot.groups) {
    rows += static_cast<double>(group.bars.size()) + 1;
    for (const Bar& bar : group.bars) {
      double total = 0;
      for (const double part : bar.parts) total += part;
      totals.push_back(total);
      names = std::max(names, std::min(kMostNames, text_width(bar.name) + 10));
    }
  }
  const double width = names + kBars + kTotals;
  const double bottom = 52 + rows * kRow;
  const Scale x(plot.x, totals, names, width - kTotals);
  std::string text = open_svg(plot.title, width, bottom + 38);
  double legend_x = names;
  for (std::size_t p = 0; p < plot.parts.size(); ++p) {
    text += rectangle(legend_x, 24, 14, 10, attribute("class", "part" + std::to_string(p)) + "/>");
    text += text_at(legend_x + 18, 33, plot.parts[p], "start");
    legend_x += 34 + 6.5 * static_cast<double>(plot.parts[p].size());
  }
  for (const double tick : x.ticks()) {
    text += line_between(x.at(tick), 42, x.at(tick), bottom, "grid");
    text += text_at(x.at(tick), bottom + 14, x.tick_text(tick), "middle");
  }
  text += text_at((names + width - kTotals) / 2, bottom + 30, plot.x.label, "middle");
  double y = 44;
  for (const BarGroup& group : plot.groups) {
    text += text_at(4, y + 12, group.name, "start", attribute("class", "strong"));
    y += kRow;
    for (const Bar& bar : group.bars) {
      text += "<g><title>" + escape(bar.name) + "</title>" +
              text_at(names - 6, y + 12, shortened(bar.name, names - 10), "end") + "</g>";
      double from = 0;
      for (std::size_t p = 0; p < bar.parts.size(); ++p) {
        const double left = x.at(from);
        from += bar.parts[p];
        text += rectangle(left, y + 2, x.at(from) - left, kRow - 5,
                          attribute("class", "part" + std::to_string(p)) + "><title>" +
                              escape(plot.parts[p]) + "</title></rect>\n");
      }
      text += text_at(x.at(from) + 4, y + 12, bar.total, "start");
      y += kRow;
    }
  }
  return text + "</svg>\n";
}

std::string svg(const CellMap& map) {
  constexpr double kNames = 90, kCell = 58, kCellHeight = 30, kHead = 28;
  const double width =
      std::max(320.0, kNames + kCell * static_cast<double>(map.columns.size()) + 6);
  const double bottom = kHead + kCellHeight * static_cast<double>(map.rows.size());
  std::string text = open_svg(map.title, width, bottom + 40);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = bottom - kCellHeight * static_cast<double>(r + 1);  // upwards
    text += text_at(kNames - 6, y + kCellHeight / 2 + 4, map.rows[r], "end");
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const Cell& cell = map.cells[r][c];
      const double x = kNames + kCell * static_cast<double>(c);
      text += "<g><title>" + escape(cell.explanation) + "</title>";
      text += rectangle(
          x, y, kCell, kCellHeight,
          attribute("class", "cell " + (cell.plain ? "plain" : style_class(cell.style))) + "/>");
      text += text_at(x + kCell / 2, y + kCellHeight / 2 + 4, cell.text, "middle",
                      attribute("class", "strong")) +
              "</g>";
    }
  }
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    text += text_at(kNames + kCell * (static_cast<double>(c) + 0.5), bottom + 14, map.columns[c],
                    "middle");
  text += text_at(kNames + kCell * static_cast<double>(map.columns.size()) / 2, bottom + 32,
                  map.x_label, "middle");
  return text + text_at(4, kHead - 6, map.y_label, "start") + "</svg>\n";
}

std::string curve_legend(const std::vector<std::pair<std::string, std::size_t>>& names) {
  std::string text = "<p class=\"legend\">";
  for (const auto& [name, style] : names)
    text += "<span><svg width=\"46\" height=\"12\" viewBox=\"0 0 46 12\" aria-hidden=\"true\">" +
            polyline("2,6 44,6", style) + marker(23, 6, style) + "</svg> " + escape(name) +
            "</span>\n";
  return text + "</p>\n";
}

std::string plot_css() {
  // Okabe and Ito's colours, darkened on paper and lightened in the dark.
  return R"(:root{--ink:#1a1a1a;--page:#fff;--faint:#d8d8d8;--c0:#1a1a1a;--c1:#0062a3;--c2:#b84a00;
--c3:#00785a;--c4:#a04a80;--c5:#8a6d00;--c6:#2a86b8;--c7:#777}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--page:#15171a;--faint:#3c4046;
--c0:#f0f0f0;--c1:#6db7ff;--c2:#ff9a5c;--c3:#4fd3ab;--c4:#ee9fd0;--c5:#e8cf55;--c6:#8fdcff;--c7:#aaa}}
svg text{font:11px sans-serif;fill:var(--ink)}svg .title{font-weight:bold;font-size:12px}
svg .strong{font-weight:bold}.grid{stroke:var(--faint)}.guide{stroke:var(--ink);stroke-dasharray:1 3}
.curve{fill:none;stroke-width:1.8}.mark{stroke:var(--page);stroke-width:.6}
.curve.s0{stroke:var(--c0)}.curve.s1{stroke:var(--c1)}.curve.s2{stroke:var(--c2)}
.curve.s3{stroke:var(--c3)}.curve.s4{stroke:var(--c4)}.curve.s5{stroke:var(--c5)}
.curve.s6{stroke:var(--c6)}.curve.s7{stroke:var(--c7)}
.mark.s0{fill:var(--c0)}.mark.s1{fill:var(--c1)}.mark.s2{fill:var(--c2)}.mark.s3{fill:var(--c3)}
.mark.s4{fill:var(--c4)}.mark.s5{fill:var(--c5)}.mark.s6{fill:var(--c6)}.mark.s7{fill:var(--c7)}
.cell{stroke:var(--page);fill-opacity:.28}.cell.plain{fill:none;stroke:var(--faint)}
.cell.s0{fill:var(--c0)}.cell.s1{fill:var(--c1)}.cell.s2{fill:var(--c2)}.cell.s3{fill:var(--c3)}
.cell.s4{fill:var(--c4)}.cell.s5{fill:var(--c5)}.cell.s6{fill:var(--c6)}.cell.s7{fill:var(--c7)}
.part0{fill:var(--c1);stroke:var(--c1)}.part1{fill:url(#hatch);stroke:var(--c2)}
.part2{fill:url(#dots);stroke:var(--c3)}
)";
}

std::string plot_hatchings() {
  return R"svg(<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<line x1="0" y1="0" x2="0" y2="5" stroke="var(--c2)" stroke-width="4"/></pattern>
<pattern id="dots" width="4" height="4" patternUnits="userSpaceOnUse">
<circle cx="2" cy="2" r="1.2" fill="var(--c3)"/></pattern></defs></svg>
)svg";
}

}  // namespace gradwire
