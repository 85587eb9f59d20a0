// Time series in .ts files: dialects, missing values, and what is refused.
#include <catch2/catch.hpp>
#include <cmath>

#include "models/dataset.h"
#include "tests/models/temporary_folder.h"

namespace gradwire {
namespace {

using Catch::Contains;

const std::string kHeader =
    "#Two channels\n@problemName Toy\n@timeStamps false\n@missing true\n@univariate false\n"
    "@dimensions 2\n@equalLength false\n@classLabel true up down\n@data\n";

// Channel 1 has values 1, 2, 3 and 6: mean 3, variance 3.5; channel 2 has 10 and 20, mean 15.
struct SeriesFolder : TemporaryFolder {
  SeriesFolder() {
    write("Toy_TRAIN.ts", kHeader + "1,2,3:10,10,20:up\n6:20:down\n");
    write("Toy_TEST.ts", kHeader + "3,3,3,3:15,15,15,15:down\n");
  }
  Dataset load(const std::string& ending = "") const {
    return load_dataset("ts:" + path("Toy" + ending).string(), 1);
  }
};

TEST_CASE("Series become steps of channels, standardised by the training part") {
  const Dataset data = SeriesFolder().load();
  CHECK_FALSE(data.synthetic);
  CHECK(data.shape.steps == 4);  // the longest of both parts
  CHECK(data.shape.channels == 2);
  CHECK(data.shape.features == 8);
  CHECK(data.shape.classes == 2);
  CHECK(data.train.labels == std::vector<int>{0, 1});
  CHECK(data.test.labels == std::vector<int>{1});
  const double s = std::sqrt(3.5);
  const Matrix expected{{Scalar(-2 / s), -1, Scalar(-1 / s), -1, 0, 1, 0, 0},
                        {Scalar(3 / s), 1, 0, 0, 0, 0, 0, 0}};
  CHECK(data.train.inputs.isApprox(expected, Scalar(1e-5)));
  CHECK(data.test.inputs.isZero());
}

TEST_CASE("A series file is found by prefix, by either name and gzipped") {
  const SeriesFolder folder;
  const Matrix inputs = folder.load().train.inputs;
  CHECK(folder.load("_TRAIN.ts").train.inputs == inputs);
  CHECK(folder.load("_TEST.ts").train.inputs == inputs);
  folder.compress("Toy_TRAIN.ts");
  CHECK(folder.load().train.inputs == inputs);
  CHECK(folder.load("_TRAIN.ts.gz").train.inputs == inputs);
}

TEST_CASE("sktime's zero-padded dialect loads like the ragged file") {
  const SeriesFolder folder;
  const Matrix ragged = folder.load().train.inputs;
  folder.write("Toy_TRAIN.ts",
               "@problemname Toy\r\n@multivariate true 2\r\n@classLabel true up down \r\n@data\r\n"
               "1,2,3,0,0:10,10,20,0,0:up\r\n6,0,0,0,0:20,0,0,0,0:down\r\n\r\n");
  folder.write("Toy_TEST.ts",
               "@multivariate true 2\n@classLabel true up down\n@data\n3,3,3,3:15,15,15,15:down");
  const Dataset data = folder.load();
  CHECK(data.shape.steps == 4);
  CHECK(data.train.inputs == ragged);
}

TEST_CASE("A missing value counts in no statistic and becomes the mean") {
  const SeriesFolder folder;
  folder.write("Toy_TRAIN.ts", kHeader + "1,?,2,3:10,NaN,10,20:up\n6, ? :20,?:down\n");
  const Dataset data = folder.load();
  CHECK(data.train.inputs(0, 2) == 0);
  CHECK(data.train.inputs(0, 3) == 0);
  CHECK(data.train.inputs(0, 4) == Approx(-1 / std::sqrt(3.5)));
}

TEST_CASE("Dimensions of one series may differ in length") {
  const SeriesFolder folder;
  folder.write("Toy_TRAIN.ts", kHeader + "1,2,3:10,10:up\n6:20:down\n");
  const Dataset data = folder.load();
  CHECK(data.train.inputs(0, 5) == 0);
  CHECK(data.train.inputs(1, 1) == Approx(std::sqrt(2.0)));  // 10, 10 and 20
}

struct Fault {
  std::string text;
  const char* message;
};

TEST_CASE("A malformed series file is refused with its name, line and what is wrong") {
  const auto fault = GENERATE_COPY(values<Fault>({
      {"", "has no @data line"},
      {kHeader, "has no series after @data"},
      {kHeader.substr(0, 40), "has no @data line"},
      {"\x89PNG\r\n\x1a\n", "line 1 begins with neither @ nor #: \"?PNG\""},
      {"@\n", "line 1 is an @ without a name"},
      {"@data\n1:up\n", "line 1 begins the data without @classLabel"},
      {"@classLabel false\n@data\n", "line 1 needs true and the class labels"},
      {"@classLabel true\n", "line 1 needs true and the class labels"},
      {"@classLabel true a b a\n", "declares the class \"a\" twice"},
      {"@targetLabel true\n", "line 1 is of a regression problem"},
      {"@timeStamps true\n", "line 1 asks for time stamps"},
      {"@dimensions 0\n", "says \"0\"; allowed: 1 to 1048576"},
      {"@dimensions two\n", "says \"two\""},
      {"@dimensions 99999999999999999999\n", "says \"99999999999999999999\""},
      {kHeader + "1,2:3,4:left\n", "line 10 has the label \"left\"; @classLabel declares \"up d"},
      {kHeader + "1,2:3,x:up\n", "line 10 has \"x\" where a number or ? is needed"},
      {kHeader + "1,,2:3,4:up\n", "line 10 has \"\" where"},
      {kHeader + "1,2:3,1e99:up\n", "line 10 has \"1e99\" where"},
      {kHeader + "1,2:3,inf:up\n", "line 10 has \"inf\" where"},
      {kHeader + "1,2:3,4:5,6:up\n", "has 3 dimensions before its label, not 2"},
      {kHeader + "up\n", "has 0 dimensions before its label, not 2"},
      {"@classLabel true a b\n@data\n1:2:a\n1:a\n", "line 4 has 1 dimensions before its label"},
      {"@classLabel true a b\n@equalLength true\n@seriesLength 3\n@data\n1,2:a\n",
       "has 2 values in dimension 1, not 3 as with @equalLength true"},
  }));
  const SeriesFolder folder;
  folder.write("Toy_TRAIN.ts", fault.text);
  CAPTURE(fault.text, fault.message);
  CHECK_THROWS_AS(folder.load(), std::invalid_argument);
  CHECK_THROWS_WITH(folder.load(), Contains("Toy_TRAIN.ts") && Contains(fault.message));
}

TEST_CASE("A test file that does not fit the training file is refused, and a missing one") {
  const SeriesFolder folder;
  folder.write("Toy_TEST.ts", "@classLabel true down up\n@data\n1:2:up\n");
  CHECK_THROWS_WITH(folder.load(), Contains("Toy_TEST.ts") && Contains("names others"));
  folder.remove("Toy_TEST.ts");
  CHECK_THROWS_WITH(folder.load(), Contains("no file Toy_TEST.ts or Toy_TEST.ts.gz"));
}

TEST_CASE("A byte order mark before a series file is skipped") {
  const SeriesFolder folder;
  const Matrix inputs = folder.load().train.inputs;
  folder.write("Toy_TRAIN.ts", "\xEF\xBB\xBF" + folder.read("Toy_TRAIN.ts"));
  CHECK(folder.load().train.inputs == inputs);
}

TEST_CASE("Headers that the data contradict are refused with the line") {
  const auto [headers, data, message] = GENERATE(table<std::string, std::string, std::string>({
      {"@missing false\n", "1,?:1,2:up\n", "line 4 has \"?\", but the header says @missing false"},
      {"@equalLength true\n", "1,2:1,2:up\n1,2,3:1,2,3:up\n", "line 5 has 3 values"},
      {"@equalLength true\n", "1,2:1,2,3:up\n", "line 4 has 3 values in dimension 2"},
      {"@univariate true\n", "1,2:1,2:up\n", "line 4 has 2 dimensions"},
      {"@univariate true\n@dimensions 2\n", "1,2:1,2:up\n", "line 2 contradicts @univariate true"},
      {"@dimensions 2\n@univariate true\n", "1,2:1,2:up\n", "line 2 contradicts @univariate true"},
  }));
  const SeriesFolder folder;
  folder.write("Toy_TRAIN.ts", headers + "@classLabel true up down\n@data\n" + data);
  CHECK_THROWS_WITH(folder.load(), Contains(message));
}

}  // namespace
}  // namespace gradwire
