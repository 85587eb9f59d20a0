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
  CHECK_THAT(complaint(pair_xml(kGoodLink + kGoodLink)),
             StartsWith("7: ") && Contains("'l' is taken in line 7"));
  CHECK_THAT(complaint(pair_xml(kGoodLink, hosts_xml("aab"))),
             StartsWith("6: ") && Contains("'a' is taken in line 5"));
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
             StartsWith("workers-per-host: -1"));
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

std::string link_with(const std::string& attribute) {
  return R"(<link id="l" bandwidth="1Gbps" latency="1us" )" + attribute + "/>";
}
std::string host_with(const std::string& attribute) {
  return R"(<host id="c" speed="1Gf,2Gf" )" + attribute + "/>" + kGoodLink;
}
std::string cluster_with(const std::string& attribute, const std::string& radical = "0-3") {
  return platform_xml(R"(<cluster id="c" prefix="n" suffix="" radical=")" + radical +
                      R"(" speed="1Gf" bw="1Gbps" lat="1us" )" + attribute + "/>");
}

TEST_CASE("Wi-Fi, which passed the check and crashed the run, is refused") {
  CHECK_THAT(complaint(pair_xml(link_with("sharing_policy=\"WIFI\""))),
             StartsWith("7: <link id=\"l\"> sharing_policy=\"WIFI\"") && Contains("Wi-Fi"));
  std::string xml = pair_xml(kGoodLink);
  xml.replace(xml.find("Full"), 4, "Wifi");
  CHECK_THAT(complaint(xml), StartsWith("4: <zone id=\"world\"> routing=\"Wifi\""));
}

TEST_CASE("links and hosts that fail, which passed the check and crashed the run, are refused") {
  CHECK_THAT(complaint(pair_xml(link_with("state_file=\"s.profile\""))),
             StartsWith("7: <link id=\"l\"> state_file=\"s.profile\""));
  CHECK_THAT(complaint(pair_xml(host_with("state_file=\"s.profile\""))),
             StartsWith("7: <host id=\"c\"> state_file=\"s.profile\""));
  CHECK_THAT(complaint(pair_xml(kGoodLink + R"(<trace id="t" periodicity="0"/>)" +
                                R"(<trace_connect trace="t" element="l" kind="LINK_AVAIL"/>)")),
             StartsWith("7: <trace_connect> kind=\"LINK_AVAIL\"") && Contains("bandwidth_file"));
}

TEST_CASE("a bandwidth profile must hold bandwidths above 0, and tiny ones are warned of") {
  const auto with_profile = [](const PlatformFile& profile) {
    const std::filesystem::path path(profile.path());  // relative to the platform's folder
    const auto name = "../" / path.parent_path().filename() / path.filename();
    return pair_xml(link_with("bandwidth_file=\"" + name.string() + "\""));
  };
  CHECK(
      complaint(with_profile(PlatformFile("# s byte/s\n0.0 1e8\n1 2e8\nPERIODICITY 2\n"))).empty());
  for (const std::string bad : {"1.0 0", "1.0 -5", "1.0 nan", "1.0", "hello", "1.0 5 5"}) {
    CAPTURE(bad);
    CHECK_THAT(complaint(with_profile(PlatformFile("0.0 1e8\n" + bad + "\n"))),
               StartsWith("7: <link id=\"l\">") && Contains("line 2 \"" + bad + "\""));
  }
  CHECK_THAT(warnings(with_profile(PlatformFile("0.0 0.5\n"))),
             Contains("line 7") && Contains("\"0.0 0.5\" makes it 4bps") && Contains("factor"));
}

TEST_CASE("a platform without a zone, which crashed while loading, is refused") {
  CHECK_THAT(complaint(platform_xml("")), StartsWith("3: ") && Contains("no zone"));
}

TEST_CASE("a bare bandwidth is answered with the same number of bit/s, not a billion times that") {
  CHECK_THAT(complaint(pair_xml(link_xml("1000000000", "1us"))),
             Contains("write 1000000000bps (1Gbps)"));
}

TEST_CASE("a bare latency is not taken as seconds") {
  CHECK_THAT(complaint(pair_xml(link_xml("1Gbps", "50"))),
             StartsWith("7: <link id=\"l\"> latency=\"50\" has no unit") && Contains("50us"));
  CHECK_THAT(complaint(star_xml("bb_bw=\"1Gbps\" bb_lat=\"1e-3\"")), Contains("bb_lat=\"1e-3\""));
  CHECK(complaint(pair_xml(link_xml("1Gbps", "0.0"))).empty());
}

TEST_CASE("one worker has no routes and no figures of them") {
  const PlatformFile star(star_xml());
  CHECK_FALSE(check_platform(star.scenario(1)).has_routes());
  CHECK(check_platform(star.scenario(2)).has_routes());
}

TEST_CASE("a quantity that is none is refused with its element and attribute") {
  for (const std::string value :
       {"fast", "", "1 Gbps", "1Gbps ", "1KBps", "1Gbps,2Gbps", "1e308Gbps"}) {
    CAPTURE(value);
    CHECK_THAT(complaint(pair_xml(link_xml(value, "1us"))),
               StartsWith("7: <link id=\"l\"> bandwidth=\"" + value + "\" is not a bandwidth"));
  }
  CHECK_THAT(complaint(pair_xml(link_xml("1Gbps", "1min"))),
             StartsWith("7: <link id=\"l\"> latency=\"1min\" is not a time"));
  CHECK_THAT(complaint(star_xml("bb_lat=\"1us\"")), Contains("bb_lat=\"1us\" needs a bb_bw"));
}

TEST_CASE("every unit of SimGrid is let through to it") {
  for (const std::string prefix : {"", "k", "M", "G", "T", "P", "E", "Z", "Y", "Ki", "Mi", "Gi"})
    for (const std::string unit : {"bps", "Bps"}) {
      CAPTURE(prefix, unit);
      CHECK(complaint(pair_xml(link_xml("1" + prefix + unit, "1us"))).empty());
    }
  for (const std::string unit : {"ps", "ns", "us", "ms", "s", "m", "h", "d", "w"})
    CHECK(complaint(pair_xml(link_xml("1Gbps", "1" + unit))).empty());
}

TEST_CASE("a value that is none of a choice's is refused with the list") {
  std::string xml = pair_xml(kGoodLink);
  xml.replace(xml.find("Full"), 4, "Bogus");
  CHECK_THAT(complaint(xml), StartsWith("4: <zone id=\"world\"> routing=\"Bogus\" is not one of") &&
                                 Contains("Full, Floyd"));
  CHECK_THAT(
      complaint(pair_xml(link_with("sharing_policy=\"shared\""))),
      StartsWith("7: <link id=\"l\"> sharing_policy=\"shared\" is not one of SHARED, SPLIT"));
  CHECK_THAT(complaint(cluster_with("topology=\"TREE\"")),
             StartsWith("4: <cluster id=\"c\"> topology=\"TREE\" is not one of FLAT, TORUS"));
}

TEST_CASE("an Empty zone without a host is named") {
  CHECK_THAT(complaint(platform_xml("<zone id=\"w\" routing=\"Empty\"/>")),
             StartsWith("4: <zone id=\"w\"> routing=\"Empty\"") && Contains("None"));
  CHECK_THAT(complaint(cluster_with("topology=\"TORUS\"")), Contains("needs topo_parameters"));
}

TEST_CASE("an unknown element or attribute is named") {
  CHECK_THAT(complaint(pair_xml(kGoodLink + "<foo/>")),
             StartsWith("7: <foo> is no element") && Contains("link_ctn"));
  CHECK_THAT(complaint(pair_xml(link_with("colour=\"red\""))),
             StartsWith("7: <link id=\"l\"> colour=\"red\"") && Contains("sharing_policy"));
}

TEST_CASE("cores and pstates out of range are refused with their line") {
  for (const std::string bad : {"core=\"0\"", "core=\"two\"", "pstate=\"2\"", "pstate=\"-1\""})
    CHECK_THAT(complaint(pair_xml(host_with(bad))), StartsWith("7: <host id=\"c\"> " + bad));
  CHECK(complaint(pair_xml(host_with("core=\"4\" pstate=\"1\""))).empty());
}

TEST_CASE("a route over no link, or in no direction, is refused with its line") {
  const auto over = [](const std::string& link, const std::string& contents) {
    return complaint(full_zone_xml(hosts_xml("ab") + link + "\n<route src=\"a\" dst=\"b\">" +
                                   contents + "</route>"));
  };
  const std::string duplex = link_with("sharing_policy=\"SPLITDUPLEX\"");
  CHECK_THAT(over(kGoodLink, R"(<link_ctn id="z"/>)"),
             StartsWith("8: <link_ctn> id=\"z\": no <link>"));
  CHECK_THAT(over(duplex, R"(<link_ctn id="l"/>)"), StartsWith("8: ") && Contains("UP or DOWN"));
  CHECK_THAT(over(kGoodLink, R"(<link_ctn id="l" direction="UP"/>)"),
             StartsWith("8: ") && Contains("SPLITDUPLEX"));
  CHECK(over(duplex, R"(<link_ctn id="l_UP"/>)").empty());
  CHECK(over(duplex, R"(<link_ctn id="l" direction="DOWN"/>)").empty());
}

TEST_CASE("a route to no node names it, with its line") {
  CHECK_THAT(complaint(full_zone_xml(hosts_xml("ab") + R"(<route src="a" dst="zz"/>)")),
             StartsWith("7: ") && Contains("dst='zz' names no node"));
}

TEST_CASE("an unknown setting is refused without SimGrid's list of all") {
  std::string xml = pair_xml(kGoodLink);
  xml.insert(xml.find("<zone"), "<config><prop id=\"no/key\" value=\"1\"/></config>");
  const std::string what = complaint(xml);
  CHECK_THAT(what, StartsWith("4: ") && Contains("\"no/key\""));
  CHECK(what.size() < 100);
}

TEST_CASE("a radical of too many hosts, or of none, is refused") {
  CHECK_THAT(complaint(cluster_with("", "0-99999999")),
             StartsWith("4: <cluster id=\"c\"> radical=\"0-99999999\" makes 100000000") &&
                 Contains("allowed are 100000 in"));
  for (const std::string bad : {"", "5-3", "a-b", "0-", "1-2-3", "0-99999999999999999999"})
    CHECK_THAT(complaint(cluster_with("", bad)), StartsWith("4: ") && Contains("\"" + bad + "\""));
}

TEST_CASE("a complaint of SimGrid alone has its line") {
  CHECK_THAT(complaint(cluster_with("", "0-3,2")), StartsWith("4: ") && Contains("'n2'"));
  CHECK_THAT(complaint(cluster_with("topology=\"TORUS\" topo_parameters=\"0,4\"")),
             StartsWith("4: "));
}

TEST_CASE("the loopback is warned of with units and the bandwidth in force") {
  const PlatformFile star(star_xml());
  Scenario scenario = star.scenario(2);
  scenario.workers_per_host = 2;
  CHECK_THAT(check_platform(scenario).warnings.at(0), Contains("(1Gbit/s, 25us)"));
  scenario.workers = 4;
  scenario.bandwidth_bit_per_s = 1e6;
  CHECK_THAT(check_platform(scenario).warnings.at(0), Contains("(1Mbit/s, 25us)"));
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
TEST_CASE("a platform cut short, of two roots or in UTF-16 is refused as what it is") {
  const std::string good = pair_xml(kGoodLink);
  CHECK_THAT(complaint(good.substr(0, good.rfind('<') + 1)), Contains("the file ends within <>"));
  CHECK_THAT(complaint(good + "<platform/>"), Contains("a second <platform>; the first, in line"));
  std::string wide = "\xFF\xFE";
  for (const char c : good) wide.append({c, '\0'});
  CHECK_THAT(complaint(wide), Contains("UTF-16; save it as UTF-8"));
  CHECK_THAT(complaint("\xEF\xBB\xBF" + good), Contains("byte order mark"));
  CHECK_THAT(complaint(""), Contains("is empty"));
}

TEST_CASE("a folder given as a platform is called one") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH(find_platform(folder.path()), Contains("is a folder"));
}

}  // namespace gradwire
