// The server over real connections: the protocol, and everything that is no protocol.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "superstep/edge/http/server.h"
#include "superstep/edge/load/load.h"
#include "superstep/edge/protocol/path.h"
#include "superstep/edge/protocol/routes.h"
#include "superstep/edge/protocol/status_page.h"
#include "tests/contains.h"
#include "tests/edge/client.h"
#include "tests/edge/given_back.h"
#include "tests/edge/models.h"
#include "tests/edge/served.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

TEST(Server, SpeaksTheProtocol) {
  const Served served;
  RawClient client(served.port());  // one connection for all
  const auto ask = [&](const std::string& request) {
    EXPECT_TRUE(client.send(request));
    return client.receive();
  };
  EXPECT_EQ(json::parse(body_of(ask(get("/v2"))))["name"], "superstep");
  EXPECT_EQ(status_of(ask(get("/v2/health/live"))), 200);
  EXPECT_EQ(status_of(ask(get("/v2/health/ready"))), 200);
  EXPECT_EQ(status_of(ask(get("/v2/models/m/ready"))), 200);
  const json metadata = json::parse(body_of(ask(get("/v2/models/m"))));
  EXPECT_EQ(metadata["inputs"][0]["shape"][0], -1);
  const std::string version = metadata["versions"][0];
  EXPECT_EQ(status_of(ask(get("/v2/models/m/versions/" + version))), 200);
  EXPECT_EQ(status_of(ask(get("/v2/models/m/versions/" + version + "/ready"))), 200);
  EXPECT_EQ(status_of(ask(get("/v2/models/m/versions/12"))), 404);
  const std::string answer = ask(post("/v2/models/m/versions/" + version + "/infer", infer_body(served, 3)));
  EXPECT_EQ(status_of(answer), 200);
  const json read = json::parse(body_of(answer));
  EXPECT_EQ(read["id"], "7");
  EXPECT_EQ(read["model_version"], version);
  EXPECT_EQ(read["outputs"][0]["shape"][0], 3);
  const json stats = json::parse(body_of(ask(get("/v2/models/m/stats"))))["model_stats"][0];
  EXPECT_EQ(stats["inference_count"], 3);
  EXPECT_EQ(stats["account"]["received"]["requests"], 1);
  EXPECT_TRUE(contains(ask(get("/")), "Superstep serves"));
  EXPECT_EQ(json::parse(body_of(ask(post("/v2/repository/index", ""))))[0]["state"], "READY");
}

TEST(Server, TellsOrchestratorsWhetherItLives) {
  Served served;
  for (const char* path : {"/healthz", "/livez", "/readyz"})
    EXPECT_EQ(status_of(ask_once(served, get(path))), 200) << path;
  served.repository.say_not_ready();
  EXPECT_EQ(status_of(ask_once(served, get("/readyz"))), 503);
  EXPECT_EQ(status_of(ask_once(served, get("/livez"))), 200);
}

TEST(Server, HealthNeedsNoTokenAndNothingPassesForHealth) {
  DoorSettings at_the_door;
  at_the_door.tokens = Tokens::from_text("a-secret-of-the-house", "here");
  at_the_door.tokens.protect({Scope::read, Scope::infer});
  const Served served({}, at_the_door);
  for (const char* path : {"/healthz", "/readyz", "/v2/health/live"})
    EXPECT_EQ(status_of(ask_once(served, get(path))), 200) << path;
  for (const char* path : {"/v2/openapi.json", "/", "/metrics", "/healthz/x", "/healthz%2f..%2fmetrics"})
    EXPECT_EQ(status_of(ask_once(served, get(path))), 401) << path;
}

// A client that is made from the document asks what there is.
TEST(Server, ItsDocumentNamesPathsThatItAnswers) {
  const Served served;
  const json document = json::parse(body_of(ask_once(served, get("/v2/openapi.json"))));
  EXPECT_EQ(document["openapi"], "3.0.3");
  const std::string version = served.repository.find("m")->current()->id();
  std::size_t asked = 0;
  for (const auto& [path, methods] : document["paths"].items()) {
    std::string real = path;
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>("{model}", "m"), {"{version}", version}})
      if (const auto at = real.find(name); at != std::string::npos) real.replace(at, name.size(), value);
    for (const auto& [method, operation] : methods.items()) {
      const std::string summary = operation["summary"];
      if (summary.find("(with --") != std::string::npos || summary.find("needs a token") != std::string::npos)
        continue;
      const std::string answer = ask_once(
          served,
          method == "get" ? get(real) : post(real, path.ends_with("/infer") ? infer_body(served, 1) : ""));
      EXPECT_EQ(status_of(answer), 200) << method << " " << real;
      ++asked;
    }
  }
  EXPECT_GE(asked, 18U);
}

TEST(Server, NamesMayBePercentEncoded) {
  const Served served;
  EXPECT_EQ(status_of(ask_once(served, get("/v2/models/%6d"))), 200);
  EXPECT_EQ(status_of(ask_once(served, get("/v2/%6Dodels/%6d/ready"))), 200);
  for (const char* path : {"/v2/models/%6", "/v2/models/%zz", "/v2/models%2fm", "/v2/models/m%00"})
    EXPECT_EQ(status_of(ask_once(served, get(path))), 404) << path;
  EXPECT_EQ(percent_encoded("a b/\xc3\xa9"), "a%20b%2F%C3%A9");
  EXPECT_EQ(parts_of("/v2/" + percent_encoded("a b/%41")).at(1), "a b/%41");
}

TEST(Server, ItsPageSaysHowAModelIsAsked) {
  const Served served;
  for (int i = 0; i < 25; ++i) ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)));
  const std::string page = body_of(ask_once(served, get("/")));
  EXPECT_TRUE(contains(page, "FP32"));
  EXPECT_TRUE(contains(page, "[rows, "));
  EXPECT_TRUE(contains(page, "/v2/models/m/infer"));
  EXPECT_TRUE(contains(page, "p99.9"));
  const ServedPorts ports{
      .inputs = {{"it's", ElementType::f32, Shape{2, 3}}, {"n", ElementType::i64, Shape{}}}, .outputs = {}};
  const std::string line =
      curl_line("a b", ports, {.host = "x:1; rm -r /", .secure = true, .needs_token = true});
  EXPECT_TRUE(contains(line, "head -c 32 /dev/zero"));
  EXPECT_TRUE(contains(line, "it'\\''s"));
  EXPECT_TRUE(contains(line, "Authorization: Bearer TOKEN"));
  EXPECT_TRUE(contains(line, "https://HOST:PORT/v2/models/a%20b/infer"));
}

TEST(Durations, QuantilesAreEdgesAboveThem) {
  Durations times;
  EXPECT_EQ(times.quantile(0.5), 0);
  times.add(std::chrono::microseconds(12), 99);
  times.add(std::chrono::microseconds(900));
  EXPECT_DOUBLE_EQ(times.quantile(0.5), 15e-6);
  EXPECT_DOUBLE_EQ(times.quantile(0.99), 15e-6);
  EXPECT_GE(times.quantile(0.999), 900e-6);
}

TEST(Server, SaysWhatIsWrong) {
  const Served served;
  RawClient client(served.port());
  const auto expect = [&](int status, const std::string& part, const std::string& request) {
    ASSERT_TRUE(client.send(request));
    const std::string answer = client.receive();
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_TRUE(contains(json::parse(body_of(answer))["error"].get<std::string>(), part)) << answer;
  };
  expect(404, "'n'", get("/v2/models/n"));
  expect(404, "nothing at", get("/v3"));
  expect(404, "nothing at", get("/v2/models/m/versions"));
  expect(404, "nothing to post", post("/v2/models/m/nothing", ""));
  expect(404, "'n'", post("/v2/models/n/infer", "{}"));
  expect(400, "JSON", post("/v2/models/m/infer", "{"));
  expect(400, "inputs", post("/v2/models/m/infer", "{}"));
  expect(405, "DELETE", "DELETE /v2/models/m HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect(413, "at most", post("/v2/models/m/infer", infer_body(served, 5000)));
  EXPECT_EQ(served.account().of(Outcome::invalid).requests, 3U);
  EXPECT_TRUE(served.account().balances());
}

TEST(Server, AnswersWhatIsSentInOneGo) {
  const Served served;
  RawClient client(served.port());
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += post("/v2/models/m/infer", infer_body(served, 1)) + get("/v2/health/live");
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(status_of(client.receive()), 200) << i;
}

TEST(Server, ReadsWhatComesByteByByte) {
  const Served served;
  RawClient client(served.port());
  for (const char byte : post("/v2/models/m/infer", "{}")) ASSERT_TRUE(client.send(std::string(1, byte)));
  EXPECT_EQ(status_of(client.receive()), 400);
}

TEST(Server, RefusesWhatIsNoHttp) {
  const Served served;
  for (const std::string& bytes :
       {std::string("\0\0\0\0\r\n\r\n", 8), std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("\x16\x03\x01 tls\r\n\r\n"), std::string("GET / HTTP/1.1\r\nContent-Length: -4\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nBad header\r\n\r\n")}) {
    RawClient client(served.port());
    client.send(bytes);
    EXPECT_TRUE(client.is_closed(20'000)) << bytes;
  }
  EXPECT_EQ(status_of(ask_once(served, get("/v2/health/live"))), 200);
}

TEST(Server, KeepsItsLimits) {
  const Served served({.most_body_bytes = 4096});
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", std::string(5000, ' ')))), 413);
  EXPECT_EQ(status_of(ask_once(served,
                               "POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 2000000000000\r\n\r\n")),
            413);
  EXPECT_EQ(
      status_of(ask_once(served, "POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")),
      411);
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", "{}", "Content-Encoding: gzip\r\n"))), 415);
  RawClient endless(served.port());
  endless.send("GET / HTTP/1.1\r\n" + std::string(100'000, 'a'));
  EXPECT_TRUE(endless.is_closed(20'000)) << "a header without end";
  expect_all_given_back(served.budget);
}

TEST(Server, RefusesBodiesThatMemoryIsNotLeftFor) {
  const Served served({.most_body_bytes = 1 << 20}, {}, 1 << 20);
  // Nine tenths of the memory are held by one who has sent so much; given back when it leaves.
  {
    RawClient slow(served.port());
    slow.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n" +
              std::string(480'000, ' '));
    for (int i = 0; i < 500 && served.budget.left() > 100'000; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LT(served.budget.left(), 100'000U);
    EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", std::string(50'000, ' ')))), 503);
  }
  expect_all_given_back(served.budget);
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)))), 200);
  expect_all_given_back(served.budget);
}

TEST(Server, LetsGoOfWhoSendsTooSlowly) {
  const Served served({.header_time = std::chrono::milliseconds(200)});
  RawClient header(served.port()), body(served.port());
  header.send("GET / HT");
  body.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n123");
  EXPECT_TRUE(header.is_closed(20'000));
  EXPECT_TRUE(body.is_closed(20'000));
  // The socket is closed first, then counted.
  for (int i = 0; i < 500 && served.server->account().of(ConnectionEnd::slow) < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(served.server->account().of(ConnectionEnd::slow), 2U);
  EXPECT_EQ(served.server->account().of(RequestEnd::slow), 1U) << "the other was no request yet";
}

TEST(Server, GivesThePlaceOfTheIdlestToANewOne) {
  const Served served({.most_connections = 4});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(std::make_unique<RawClient>(served.port()));
    idle.back()->send(get("/v2/health/live"));
    ASSERT_EQ(status_of(idle.back()->receive()), 200) << i;
  }
  EXPECT_TRUE(idle.front()->is_closed(20'000));
  EXPECT_EQ(served.server->account().of(ConnectionEnd::full), 0U);
  EXPECT_EQ(served.server->account().of(ConnectionEnd::peer_share), 0U);
}

// Thousands who say nothing, and some who begin and stop: whoever asks is answered.
TEST(Server, AnswersAmongThousandsWhoSayNothing) {
  const Served served({.most_connections = 128});
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 900; ++i) {
    silent.push_back(std::make_unique<RawClient>(served.port()));
    ASSERT_TRUE(silent.back()->connected()) << i;
    if (i % 30 == 0) silent.back()->send("POST /v2/models/m/infer HTTP/1.1\r\nContent-Le");
    if (i % 100 == 0) {
      EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)))), 200) << i;
    }
  }
  EXPECT_EQ(status_of(ask_once(served, get("/v2/health/live"))), 200);
}

TEST(Server, LetsOnlyThoseWithTheTokenChangeModels) {
  const Served closed, with_token({}, {.tokens = Tokens::from_text("correct-horse", "")});
  const std::string good = "Authorization: Bearer correct-horse\r\n";
  for (const std::string path : {"/v2/repository/models/m/load", "/v2/repository/models/m/unload",
                                 "/v2/models/m/rollback", "/learn"}) {
    EXPECT_EQ(status_of(ask_once(closed, post(path, ""))), 403) << "from this machine, too: " << path;
    EXPECT_EQ(status_of(ask_once(with_token, post(path, ""))), 401) << path;
    EXPECT_EQ(status_of(ask_once(with_token, post(path, "", "Authorization: Bearer correct-hors\r\n"))), 401);
    EXPECT_EQ(status_of(ask_once(with_token, post(path, "", "Authorization: correct-horse\r\n"))), 401);
  }
  const std::string load = "/v2/repository/models/m/load";
  EXPECT_EQ(status_of(ask_once(with_token, post(load, "", good + "Origin: https://example.org\r\n"))), 403);
  for (const char* scheme : {"Bearer", "bearer", "BEARER"})
    EXPECT_EQ(
        status_of(ask_once(with_token,
                           post(load, "", "Authorization: " + std::string(scheme) + " correct-horse\r\n"))),
        200);
  EXPECT_EQ(status_of(ask_once(closed, post("/v2/models/m/infer", infer_body(closed, 1)))), 200);
}

TEST(Server, AnswersLateRequestsAsLate) {
  const Served served({}, {}, 1 << 28, small_service(1, 1));
  // A long request keeps the only worker busy for far longer than a microsecond.
  RawClient busy(served.port()), late(served.port());
  busy.send(post("/v2/models/m/infer", infer_body(served, 4000)));
  for (int i = 0; i < 2000 && served.account().running.requests == 0; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  late.send(post("/v2/models/m/infer", infer_body(served, 1, {{"timeout", 1}})));
  EXPECT_EQ(status_of(late.receive()), 504);
  EXPECT_EQ(status_of(busy.receive()), 200);
  EXPECT_EQ(served.account().of(Outcome::expired).requests, 1U);
}

TEST(Server, UnloadsAndLoads) {
  const Served served({}, {.tokens = Tokens::from_text("correct-horse", "")});
  const std::string good = "Authorization: Bearer correct-horse\r\n";
  EXPECT_EQ(status_of(ask_once(served, post("/v2/repository/models/m/unload", "", good))), 200);
  const std::string body = R"({"inputs":[]})";
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", body))), 503);
  EXPECT_EQ(status_of(ask_once(served, get("/v2/models/m/ready"))), 503);
  EXPECT_EQ(status_of(ask_once(served, post("/v2/repository/models/m/load", "", good))), 200);
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)))), 200);
}

// Every line is a comment or a sample, histograms add up, and the counts are those of the account.
TEST(Server, WritesMetricsThatPrometheusReads) {
  const Served served;
  for (int i = 0; i < 5; ++i) ask_once(served, post("/v2/models/m/infer", infer_body(served, 2)));
  const std::string answer = ask_once(served, get("/metrics"));
  EXPECT_TRUE(contains(answer, "text/plain; version=0.0.4"));
  std::istringstream lines(body_of(answer));
  std::map<std::string, double> samples;
  double bucket = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const std::size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos) << line;
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + space, &end);
    EXPECT_EQ(*end, '\0') << line;
    EXPECT_TRUE(samples.emplace(line.substr(0, space), value).second) << "twice: " << line;
    if (line.starts_with("superstep_seconds_bucket{model=\"m\",stage=\"total\"")) {
      EXPECT_GE(value, bucket) << "buckets are cumulative";
      bucket = value;
    }
  }
  EXPECT_EQ(bucket, 5);
  EXPECT_EQ(samples.at("superstep_seconds_count{model=\"m\",stage=\"total\"}"), 5);
  EXPECT_EQ(samples.at("superstep_requests_total{model=\"m\",outcome=\"served\"}"), 5);
  EXPECT_EQ(samples.at("superstep_rows_total{model=\"m\",outcome=\"served\"}"), 10);
}

// --- load

std::string url(const Served& served) {
  return "http://127.0.0.1:" + std::to_string(served.port()) + "/v2/models/m";
}

TEST(Load, CountsWhatTheServerCounts) {
  const Served served;
  const LoadTarget target = open_target(url(served));
  for (const auto& [rate, connections, binary] :
       {std::tuple(0.0, 1, true), std::tuple(0.0, 64, false), std::tuple(500.0, 8, true)}) {
    const Account before = served.account();
    const LoadReport report = apply_load(target, {.rate = rate,
                                                  .connections = connections,
                                                  .rows = 3,
                                                  .binary = binary,
                                                  .warm_up = 0,
                                                  .seconds = 0.5});
    const Account after = served.account();
    EXPECT_EQ(report.unanswered, 0U);
    EXPECT_EQ(report.statuses.size(), 1U);
    // In a closed loop the last of each connection is due within the time too.
    EXPECT_EQ(after.of(Outcome::served).requests - before.of(Outcome::served).requests,
              report.statuses.at(200));
    EXPECT_EQ(report.server.requests, report.statuses.at(200));
    EXPECT_EQ(report.server.rows, 3 * report.statuses.at(200));
    EXPECT_TRUE(after.balances());
  }
}

// Latency counts from when a request was due: a server that stalls is seen by all that were due meanwhile.
TEST(Load, SeesAStallInEveryRequestThatWasDue) {
  MemoryBudget budget(1 << 26);
  std::atomic<int> asked = 0;
  Door door;
  Server server(
      {.port = 0}, budget, door, {.handle = [&](HttpRequest request, Reply reply) {
        if (request.method == "GET") {
          reply({.body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[-1]}],"versions":["1"]})"});
          return;
        }
        if (asked++ == 100) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // everybody waits
        reply({.body = "{}"});
      }});
  const LoadTarget target = open_target("http://127.0.0.1:" + std::to_string(server.port()) + "/v2/models/x");
  const LoadReport report = apply_load(
      target, {.rate = 400, .connections = 2, .arrivals = Arrivals::constant, .warm_up = 0, .seconds = 1});
  EXPECT_NEAR(static_cast<double>(report.due), 400, 1);
  const auto slow = std::ranges::count_if(report.latencies, [](double latency) { return latency > 0.1; });
  EXPECT_GT(slow, 60) << "about 80 requests were due in the first 200 ms of the stall";
}

TEST(Load, SaysWhatIsNotThere) {
  const Served served;
  expect_error(ErrorCode::io, {"127.0.0.1:1"}, [] { open_target("http://127.0.0.1:1/v2/models/m"); });
  expect_error(ErrorCode::not_found, {"'n'"},
               [&] { open_target("http://127.0.0.1:" + std::to_string(served.port()) + "/v2/models/n"); });
  for (const char* bad : {"", "ftp://x", "http://x/other", "http://x/v2/models/a/b"})
    expect_error(ErrorCode::invalid_argument, {"address"}, [&] { open_target(bad); });
  EXPECT_EQ(open_target("127.0.0.1:" + std::to_string(served.port())).model, "m");
}

TEST(Address, IsReadOrRefused) {
  EXPECT_TRUE(parse_address(":8000").is_loopback());
  EXPECT_TRUE(parse_address("[::1]:8000").is_loopback());
  EXPECT_FALSE(parse_address("*:8000").is_loopback());
  EXPECT_EQ(parse_address("10.0.0.1:0").port, 0);
  for (const char* bad : {"", "8000", "x:", "x:70000", "x:-1", "x:1x"})
    EXPECT_THROW(parse_address(bad), Error) << bad;
}

// Between the last that was accepted and the last that is answered there may be nothing for it to do.
TEST(Server, AnswersWhatIsStillComputedWhenItAcceptsNoMore) {
  MemoryBudget budget(1 << 20);
  std::promise<Reply> asked;
  Door door;
  Server server({.port = 0}, budget, door,
                {.handle = [&](HttpRequest, Reply reply) { asked.set_value(std::move(reply)); }});
  RawClient client(server.port());
  ASSERT_TRUE(client.send(get("/")));
  Reply reply = asked.get_future().get();
  server.stop_accepting();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  reply({.body = "{}"});
  reply = nullptr;  // it holds the connection
  server.finish(Clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(status_of(client.receive()), 200);
}

TEST(Server, SaysThatAnAddressIsTaken) {
  const Served served;
  MemoryBudget budget(1);
  Door door;
  expect_error(ErrorCode::io, {"127.0.0.1", "--http"},
               [&] { Server({.port = served.port()}, budget, door, {}); });
}

}  // namespace
}  // namespace superstep::edge
