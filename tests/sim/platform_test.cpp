// Bad platform files, one clear line each; what a good one says.
#include "sim/platform.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "platform_file.h"

namespace gradwire {
namespace {

using Catch::Contains;
using Catch::StartsWith;

// The complaint about a platform, without the file's name in front.
std::string complaint(const std::string& xml, Scenario scenario = {}) {
  const PlatformFile file(xml);
  scenario.platform = file.path();
  try {
    check_platform(scenario);
  } catch (const PlatformError& error) {
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    REQUIRE(what.starts_with(file.path() + ":"));
    return what.substr(file.path().size() + 1);
  }
  return "";
}

// Two hosts and what is between them; the zone is on line 4 of the file, the link on line 7.
std::string pair_xml(const std::string& link, const std::string& hosts = hosts_xml("ab")) {
  return full_zone_xml(hosts + link + "\n" +
                       R"(<route src="a" dst="b"><link_ctn id="l"/></route>)");
}
std::string link_xml(const std::string& bandwidth, const std::string& latency) {
  return R"(<link id="l" bandwidth=")" + bandwidth + R"(" latency=")" + latency + R"("/>)";
}
const std::string kGoodLink = link_xml("1Gbps", "10us");

TEST_CASE("a good platform has no complaint") { CHECK(complaint(pair_xml(kGoodLink)).empty()); }

TEST_CASE("a missing file is refused with the known names") {
  Scenario scenario;
  scenario.platform = "no-such-platform";
  CHECK_THROWS_WITH(check_platform(scenario),
                    Contains("'no-such-platform'") && Contains("star-10g"));
}

TEST_CASE("malformed XML is refused with its line") {
  CHECK_THAT(complaint(""), Contains("empty"));
  CHECK_THAT(complaint("hello"), StartsWith("1: "));
  CHECK_THAT(complaint(platform_xml("<zone id=\"w\" routing=\"Full\">")), Contains("</platform>"));
  CHECK_THAT(complaint(pair_xml(kGoodLink + "<cable/>")), StartsWith("7: "));
  CHECK_THAT(complaint(pair_xml("<link id=\"l\" latency=\"1us\"/>")), Contains("bandwidth"));
}

TEST_CASE("a platform of version 3 is refused") {
  std::string xml = pair_xml(kGoodLink);
  xml.replace(xml.find("4.1"), 3, "3");
  CHECK_THAT(complaint(xml), StartsWith("3: ") && Contains("version \"3\"") && Contains("4.1"));
}

TEST_CASE("a bandwidth must be above 0 and have a unit") {
  for (const std::string value : {"0", "0Gbps", "-1Gbps", "nanBps", "infBps"}) {
    CAPTURE(value);
    CHECK_THAT(complaint(pair_xml(link_xml(value, "1us"))),
               StartsWith("7: ") && Contains("\"" + value + "\"") && Contains("above 0"));
  }
  for (const std::string value : {"10", "1e9", "125 "})
    CHECK_THAT(complaint(pair_xml(link_xml(value, "1us"))),
               StartsWith("7: ") && Contains("no unit") && Contains(value));
  CHECK_THAT(complaint(pair_xml(link_xml("1GB/s", "1us"))),
             StartsWith("7: ") && Contains("GB/s") && Contains("bps"));
  CHECK_THAT(complaint(star_xml("bb_bw=\"10\" bb_lat=\"0\"")), Contains("bb_bw=\"10\""));
}

TEST_CASE("a latency must not be negative, and 0 is legal") {
  for (const std::string value : {"-1us", "nan"})
    CHECK_THAT(complaint(pair_xml(link_xml("1Gbps", value))),
               StartsWith("7: ") && Contains("\"" + value + "\""));
  CHECK(complaint(pair_xml(link_xml("1Gbps", "0"))).empty());
}

TEST_CASE("a host speed must be above 0") {
  CHECK_THAT(complaint(pair_xml(kGoodLink,
                                "<host id=\"a\" speed=\"0f\"/><host id=\"b\" "
                                "speed=\"1Gf\"/>")),
             StartsWith("5: ") && Contains("\"a\"") && Contains("speed=\"0f\""));
}

TEST_CASE("links and hosts of one name, and routes to nowhere, are refused") {
  CHECK_THAT(complaint(pair_xml(kGoodLink + kGoodLink)), Contains("Link 'l' declared several"));
  CHECK_THAT(complaint(pair_xml(kGoodLink, hosts_xml("aab"))), Contains("host named 'a'"));
  CHECK_THAT(complaint(pair_xml(kGoodLink, hosts_xml("ac"))), Contains("'b'"));
}

TEST_CASE("a missing route between chosen hosts is refused with its ends") {
  Scenario three;
  three.workers = 3;
  const std::string three_hosts = pair_xml(kGoodLink, hosts_xml("abc"));
  CHECK_THAT(complaint(three_hosts, three), Contains("no route from 'a' to 'c'"));
  CHECK(complaint(three_hosts).empty());  // two workers do not need it
  std::string dijkstra = three_hosts;     // crashes SimGrid
  dijkstra.replace(dijkstra.find("Full"), 4, "Dijkstra");
  CHECK_THAT(complaint(dijkstra, three), Contains("no route from 'a' to 'c'"));
  std::string floyd = three_hosts;
  floyd.replace(floyd.find("Full"), 4, "Floyd");
  CHECK_THAT(complaint(floyd, three), Contains("no route from 'a' to 'c'"));
}

TEST_CASE("a Cluster zone whose hosts have no links is refused") {
  CHECK_THAT(
      complaint(platform_xml("<zone id=\"w\" routing=\"Cluster\">" + hosts_xml("ab") + "</zone>")),
      Contains("no route from 'a' to 'b'") && Contains("host_link"));
}

TEST_CASE("zones without routes or with infinite bandwidth are refused") {
  for (const std::string routing : {"Empty", "None", "Vivaldi"}) {
    std::string xml = full_zone_xml(hosts_xml("ab"));
    xml.replace(xml.find("Full"), 4, routing);
    CHECK_THAT(complaint(xml), StartsWith("4: ") && Contains(routing));
  }
}

TEST_CASE("a platform without hosts is refused") {
  CHECK_THAT(complaint(full_zone_xml("")), Contains("no hosts"));
}

TEST_CASE("profiles that are missing, or of the latency, are refused") {
  CHECK_THAT(complaint(pair_xml("<link id=\"l\" bandwidth=\"1Gbps\" latency=\"1us\" "
                                "bandwidth_file=\"no.profile\"/>")),
             Contains("no.profile"));
  CHECK_THAT(complaint(pair_xml("<link id=\"l\" bandwidth=\"1Gbps\" latency=\"1us\" "
                                "latency_file=\"no.profile\"/>")),
             StartsWith("7: ") && Contains("latency"));
}

TEST_CASE("too many workers and patterns that match no host are refused with the numbers") {
  Scenario scenario;
  scenario.workers = 5;
  scenario.workers_per_host = 2;
  CHECK_THAT(complaint(pair_xml(kGoodLink), scenario),
             Contains("workers: 5") && Contains("match 2") && Contains("at most 2 each"));
  scenario.hosts = "c*";
  CHECK_THAT(complaint(pair_xml(kGoodLink), scenario), Contains("'c*'") && Contains("a, b (2)"));
}

TEST_CASE("a scenario that no platform can serve is refused by its key") {
  const PlatformFile star(star_xml());
  const auto refusal = [&](auto change) {
    Scenario scenario = star.scenario(2);
    change(scenario);
    try {
      check_platform(scenario);
    } catch (const PlatformError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal([](Scenario& s) { s.workers = 0; }), StartsWith("workers: 0"));
  CHECK_THAT(refusal([](Scenario& s) { s.workers_per_host = -1; }),
             StartsWith("workers_per_host: -1"));
  CHECK_THAT(refusal([](Scenario& s) { s.bandwidth_bit_per_s = 0; }), StartsWith("bandwidth: 0"));
  CHECK_THAT(refusal([](Scenario& s) { s.latency_s = -1; }), StartsWith("latency: -1"));
  CHECK_THAT(refusal([](Scenario& s) { s.network_model = "simgrid:LV09"; }),
             Contains("'simgrid:LV09'") && Contains("simgrid:LV08"));
  CHECK(refusal([](Scenario&) {}).empty());
}

TEST_CASE("hosts come in the file's order, filtered by the pattern") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(4);
  scenario.hosts = "node-?";
  const PlatformInfo info = check_platform(scenario);
  REQUIRE(info.hosts.size() == 10);
  for (int i = 0; i < 10; ++i)
    CHECK(info.hosts[static_cast<std::size_t>(i)] == "node-" + std::to_string(i));
  CHECK(info.path == star.path());
  CHECK(info.links == 128);  // two directions each
}

TEST_CASE("route figures span the chosen hosts, overrides included") {
  const PlatformFile platform(full_zone_xml(hosts_xml("abc") + kGoodLink +
                                            R"(<link id="far" bandwidth="100Mbps" latency="20ms"/>
        <route src="a" dst="b"><link_ctn id="l"/></route>
        <route src="a" dst="c"><link_ctn id="l"/><link_ctn id="far"/></route>
        <route src="b" dst="c"><link_ctn id="l"/><link_ctn id="far"/></route>)"));
  Scenario scenario = platform.scenario(3);
  PlatformInfo info = check_platform(scenario);
  CHECK(info.min_route_latency_s == Approx(10e-6));
  CHECK(info.max_route_latency_s == Approx(20.01e-3));
  CHECK(info.min_route_bandwidth_bit_per_s == Approx(100e6));
  CHECK(info.max_route_bandwidth_bit_per_s == Approx(1e9));
  scenario.bandwidth_bit_per_s = 5e9;
  scenario.latency_s = 1e-6;
  info = check_platform(scenario);
  CHECK(info.max_route_latency_s == Approx(2e-6));
  CHECK(info.min_route_bandwidth_bit_per_s == Approx(5e9));
}

std::string warnings(const std::string& xml, int workers_per_host = 1) {
  const PlatformFile file(xml);
  Scenario scenario = file.scenario(2);
  scenario.workers_per_host = workers_per_host;
  std::string all;
  for (const std::string& warning : check_platform(scenario).warnings) all += warning + "\n";
  return all;
}

TEST_CASE("a full-duplex star gives no warning") { CHECK(warnings(star_xml()).empty()); }

TEST_CASE("half-duplex links, slow hosts and settings in the file are warned of") {
  CHECK_THAT(warnings(pair_xml(kGoodLink)), Contains("'l'") && Contains("SPLITDUPLEX"));
  CHECK_THAT(warnings(pair_xml(kGoodLink,
                               "<host id=\"a\" speed=\"1Mf\"/><host id=\"b\" "
                               "speed=\"1Gf\"/>")),
             Contains("host 'a'") && Contains("below 1 Gf"));
  std::string xml = pair_xml(kGoodLink);
  xml.insert(xml.find("<zone"),
             "<config><prop id=\"network/TCP-gamma\" value=\"65536\"/>"
             "<prop id=\"cpu/optim\" value=\"Full\"/></config>");
  CHECK_THAT(warnings(xml), Contains("network/TCP-gamma to 65536; ignored") &&
                                Contains("cpu/optim to Full; in effect"));
}

TEST_CASE("workers that share a host without a loopback are warned of what they use instead") {
  CHECK_THAT(warnings(star_xml(), 2), Contains("network link 'star_link_0_UP'"));
  CHECK_THAT(warnings(pair_xml(kGoodLink), 2), Contains("SimGrid's default loopback"));
  CHECK(warnings(star_xml("loopback_bw=\"10GBps\" loopback_lat=\"0\""), 2).empty());
  Scenario scenario;
  scenario.workers_per_host = 2;
  CHECK_THAT(complaint(star_xml("topology=\"TORUS\" topo_parameters=\"4,4,4\""), scenario),
             Contains("'node-0' has no loopback") && Contains("loopback_bw"));
}

TEST_CASE("a comment before the XML declaration is no error") {
  CHECK(complaint("<!-- a real file's habit -->\n" + pair_xml(kGoodLink)).empty());
}

TEST_CASE("a folder named in GRADWIRE_PLATFORMS is searched first") {
  const PlatformFile file(star_xml());
  const std::filesystem::path path(file.path());
  setenv("GRADWIRE_PLATFORMS", path.parent_path().c_str(), 1);
  const std::string found = find_platform(path.stem().string());
  unsetenv("GRADWIRE_PLATFORMS");
  CHECK(found == path.string());
  CHECK_THROWS_AS(find_platform(path.stem().string()), PlatformError);
}

}  // namespace
}  // namespace gradwire
