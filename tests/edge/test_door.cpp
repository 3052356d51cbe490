// At the doors of a server: who comes in, with how much, by which words; and that all of it is counted once.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/edge/door/door.h"
#include "superstep/edge/http/request_rules.h"
#include "superstep/edge/protocol/metrics.h"
#include "tests/contains.h"
#include "tests/edge/given_back.h"
#include "tests/edge/served.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

// --- tokens

TEST(Tokens, AreForWhatTheirLineSays) {
  Tokens tokens = Tokens::from_text(
      "# a comment\n\nall-of-it-1\nreader-token read,infer beamline\nchanger-token change\n", "f");
  const auto verdict = [&](const std::string& header, Scope scope) {
    return tokens.judge(header, scope).verdict;
  };
  EXPECT_EQ(verdict("", Scope::read), Tokens::Verdict::good) << "nothing but changes is protected";
  EXPECT_EQ(verdict("", Scope::infer), Tokens::Verdict::good);
  EXPECT_EQ(verdict("", Scope::change), Tokens::Verdict::missing);
  EXPECT_EQ(verdict("Bearer all-of-it-1", Scope::change), Tokens::Verdict::good);
  EXPECT_EQ(verdict("bEARER  changer-token", Scope::change), Tokens::Verdict::good);
  EXPECT_EQ(verdict("Bearer reader-token", Scope::change), Tokens::Verdict::wrong);
  EXPECT_EQ(verdict("Bearer reader-tokem", Scope::change), Tokens::Verdict::missing);
  EXPECT_EQ(verdict("Digest all-of-it-1", Scope::change), Tokens::Verdict::missing);
  tokens.protect({Scope::read, Scope::infer});
  EXPECT_EQ(verdict("", Scope::read), Tokens::Verdict::missing);
  EXPECT_EQ(tokens.judge("Bearer reader-token", Scope::infer).name, "beamline");
  EXPECT_EQ(verdict("Bearer changer-token", Scope::infer), Tokens::Verdict::wrong);
  // A browser asks for a password: for what it shows alone. "x:reader-token", in base64.
  EXPECT_EQ(verdict("Basic eDpyZWFkZXItdG9rZW4=", Scope::read), Tokens::Verdict::good);
  EXPECT_EQ(verdict("Basic eDpyZWFkZXItdG9rZW4=", Scope::infer), Tokens::Verdict::missing);
  EXPECT_EQ(verdict("Basic ????", Scope::read), Tokens::Verdict::missing);
  EXPECT_EQ(Tokens().judge("Bearer all-of-it-1", Scope::change).verdict, Tokens::Verdict::off);
  EXPECT_EQ(Tokens::from_text("reader-token read\n", "f").judge("", Scope::change).verdict,
            Tokens::Verdict::off);
}

TEST(Tokens, LinesThatAreNoneAreNamed) {
  const auto refused = [](const char* text, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::invalid_argument, parts, [&] { Tokens::from_text(text, "file"); });
  };
  refused("short", {"file: line 1", "8 to 1,024"});
  refused("long-enough\nlong-enough\n", {"line 2", "twice"});
  refused("long-enough read,write\n", {"line 1", "read, infer, change"});
  refused("long-enough read name more\n", {"line 1"});
  const ScratchFolder folder;
  std::ofstream(folder / "empty") << "# nothing\n";
  expect_error(ErrorCode::invalid_argument, {"holds no token"}, [&] { Tokens::read(folder / "empty"); });
}

// By what this machine's administrator wrote; a name server of a strange network is not asked.
TEST(Door, KnowsTheNamesOfItsMachine) {
  const char* const hosts =
      "127.0.0.1 localhost ours\n127.0.1.1\tNode7.Lab.example.org node7 edge # node7 comment\n"
      "10.0.0.9 other.lab.example.org other\n#127.0.1.1 node7 old\n::1 ip6-localhost";
  EXPECT_EQ(own_names("node7", hosts),
            (std::set<std::string>{"localhost", "node7", "node7.lab.example.org", "edge"}));
  EXPECT_EQ(own_names("Node7.lab.example.org", "10.0.0.7 node7.lab.example.org"),
            (std::set<std::string>{"localhost", "node7", "node7.lab.example.org"}));
  EXPECT_EQ(own_names("", hosts), (std::set<std::string>{"localhost"}));
  EXPECT_EQ(own_names("x", ""), (std::set<std::string>{"localhost", "x"}));
}

TEST(Peers, CountByTheirNetwork) {
  EXPECT_EQ(peer_of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(peer_of("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(peer_of("::1"), "::1");
  EXPECT_EQ(peer_of("2001:db8::1"), peer_of("2001:db8::ffff:2"));
  EXPECT_NE(peer_of("2001:db8::1"), peer_of("2001:db8:0:1::1"));
}

TEST(Peers, HaveSharesAndGiveThemBack) {
  PeerShares shares({.connections = 2, .bytes = 100, .requests = 1});
  EXPECT_TRUE(shares.add_connection("a") && shares.add_connection("a"));
  EXPECT_FALSE(shares.add_connection("a"));
  EXPECT_TRUE(shares.add_connection("b"));
  shares.drop_connection("a");
  EXPECT_TRUE(shares.add_connection("a"));
  EXPECT_TRUE(shares.take_bytes("a", 60));
  EXPECT_FALSE(shares.take_bytes("a", 41));
  EXPECT_FALSE(shares.take_bytes("a", ~std::size_t{0}));
  EXPECT_TRUE(shares.take_bytes("b", 100));
  shares.give_bytes("a", 60);
  EXPECT_TRUE(shares.take_bytes("a", 100));
  EXPECT_TRUE(shares.add_request("a"));
  EXPECT_FALSE(shares.add_request("a"));
}

// --- logs

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(Log, GoesOnInANewFileAndKeepsSome) {
  const ScratchFolder folder;
  const auto file = folder / "access";
  {
    JsonLog log({.file = file, .bytes = 400, .kept = 2});
    for (int i = 0; i < 40; ++i) log.add({{"number", i}, {"text", "bad \xff byte"}});
    EXPECT_EQ(log.lost(), 0U);
  }
  EXPECT_TRUE(std::filesystem::exists(file.string() + ".2"));
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".3"));
  EXPECT_LE(std::filesystem::file_size(file), 400U);
  EXPECT_EQ(lines_of(file).back()["number"], 39);
  EXPECT_EQ(lines_of(file).back()["time"].get<std::string>().size(), 24U);
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
}

TEST(Log, SaysWhatItLeavesOutOfAFlood) {
  const ScratchFolder folder;
  const auto file = folder / "access";
  {
    JsonLog log({.file = file, .lines_per_second = 10});
    for (int i = 0; i < 1000; ++i) log.add({{"number", i}});
    EXPECT_GE(log.left_out(), 900U);
  }
  std::uint64_t written = 0, left_out = 0;
  for (const json& line : lines_of(file))
    if (line.contains("left_out"))
      left_out += line["left_out"].get<std::uint64_t>();
    else
      ++written;
  EXPECT_EQ(written + left_out, 1000U);
  expect_error(ErrorCode::io, {"nowhere"}, [&] { JsonLog({.file = folder / "nowhere" / "x"}); });
}

// --- requests that somebody on the way would see another end of

DoorAccount settled(const Served& served) {
  for (int i = 0; i < 1000; ++i) {
    const DoorAccount account = served.server->account();
    if (account.open == 0 && account.under_way == 0) return account;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return served.server->account();
}

TEST(Door, RefusesWhatSaysInTwoWaysWhereItEnds) {
  const Served served;
  const std::string hidden = get("/v2/models/m");
  const auto attempt = [&](const std::string& headers) {
    RawClient client(served.port());
    client.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n0\r\n\r\n" +
                hidden);
    const std::string first = client.receive();
    EXPECT_TRUE(client.is_closed(20'000)) << headers;
    return status_of(first);
  };
  for (const char* coding :
       {"chunked", "chunked, chunked", "identity", "xchunked", "gzip, chunked", "chunked, identity",
        "\x0b"
        "chunked",
        "Chunked,", "chunked;x=1"}) {
    EXPECT_EQ(attempt("Transfer-Encoding: " + std::string(coding) + "\r\nContent-Length: 5\r\n"), 400)
        << coding;
    EXPECT_EQ(attempt("Content-Length: 5\r\nTransfer-Encoding: " + std::string(coding) + "\r\n"), 400)
        << coding;
    if (std::string(coding) != "chunked") {
      EXPECT_EQ(attempt("Transfer-Encoding: " + std::string(coding) + "\r\n"), 400) << coding;
    }
  }
  EXPECT_EQ(attempt("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(attempt("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(attempt("Content-Length: 5\r\nContent-Length: 50\r\n"), 400);
  for (const char* length : {"5, 5", "+5", "-5", "0x5", "5 5", "", "5a"})
    EXPECT_EQ(attempt("Content-Length: " + std::string(length) + "\r\n"), 400) << length;
  EXPECT_EQ(attempt("Content-Length : 5\r\n"), 400);
  EXPECT_EQ(attempt("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n"), 400);
  const DoorAccount account = settled(served);
  EXPECT_TRUE(account.balances());
  EXPECT_EQ(account.of(RequestEnd::answered), 0U) << "what was hidden in a body was taken for a request";
  EXPECT_EQ(account.of(RequestEnd::malformed), account.requests);
}

TEST(Door, AnswersUnderItsOwnNamesAlone) {
  const Served served({}, {.hosts = {"edge.example.org"}}), any({}, {.hosts = {"*"}});
  const auto with_host = [](const Served& of, const std::string& host) {
    return status_of(ask_once(of, "GET /v2 HTTP/1.1\r\nHost: " + host + "\r\n\r\n"));
  };
  for (const char* host : {"localhost", "localhost:8000", "LOCALHOST", "127.0.0.1", "10.1.2.3:80",
                           "[::1]:8000", "Edge.example.org:8443"})
    EXPECT_EQ(with_host(served, host), 200) << host;
  for (const char* host : {"evil.example.org", "localhost.evil.org", "127.0.0.1.evil.org", "", "[::1"})
    EXPECT_EQ(with_host(served, host), 421) << host;
  EXPECT_EQ(with_host(any, "evil.example.org"), 200);
  EXPECT_EQ(status_of(ask_once(served, "GET /v2 HTTP/1.1\r\n\r\n")), 400);
  EXPECT_EQ(status_of(ask_once(served, "GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")),
            400);
  EXPECT_EQ(status_of(ask_once(served, "GET /v2 HTTP/1.0\r\n\r\n")), 200);
  const std::string infer = infer_body(served, 1);
  const auto from = [&](const std::string& origin) {
    return status_of(ask_once(served, post("/v2/models/m/infer", infer, "Origin: " + origin + "\r\n")));
  };
  EXPECT_EQ(from("http://localhost"), 200);
  for (const char* origin : {"https://localhost", "http://localhost:81", "http://evil.org", "null"})
    EXPECT_EQ(from(origin), 403) << origin;
}

TEST(Door, LetsInWhoHasATokenForIt) {
  DoorSettings door{.tokens = Tokens::from_text("reader-token read\nasker-token infer\n", "")};
  door.tokens.protect({Scope::read, Scope::infer});
  const Served served({}, std::move(door));
  const auto with = [](const char* token) { return "Authorization: Bearer " + std::string(token) + "\r\n"; };
  const auto read = [&](const std::string& path, const std::string& headers) {
    return status_of(ask_once(served, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n"));
  };
  for (const char* path : {"/", "/metrics", "/v2", "/v2/models/m", "/v2/models/m/stats", "/live", "/learn"}) {
    EXPECT_EQ(read(path, ""), 401) << path;
    EXPECT_EQ(read(path, with("asker-token")), 403) << path;
  }
  EXPECT_EQ(read("/metrics", with("reader-token")), 200);
  EXPECT_TRUE(contains(ask_once(served, get("/")), "WWW-Authenticate: Bearer"));
  EXPECT_EQ(read("/v2/health/live", ""), 200);
  EXPECT_EQ(read("/v2/health/ready", ""), 200);
  const auto infer = [&](const std::string& headers) {
    return status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1), headers)));
  };
  EXPECT_EQ(infer(""), 401);
  EXPECT_EQ(infer(with("reader-token")), 403);
  EXPECT_EQ(infer(with("asker-token")), 200);
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/rollback", "", with("asker-token")))), 403);
  const DoorAccount account = settled(served);
  EXPECT_EQ(account.of(RequestEnd::no_token), 18U);
  EXPECT_TRUE(account.balances());
}

// --- shares

TEST(Door, OneAddressDoesNotShutOutTheOthers) {
  Served served({.most_connections = 64}, {.peers = {.connections = 32}});
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 200; ++i) {  // each says a byte, and waits
    silent.push_back(std::make_unique<RawClient>(served.port(), 2));
    silent.back()->send("G");
  }
  for (int i = 3; i < 40; ++i) {
    RawClient other(served.port(), i);
    ASSERT_TRUE(other.send(post("/v2/models/m/infer", infer_body(served, 1))));
    EXPECT_EQ(status_of(other.receive()), 200) << i;
  }
  const DoorAccount now = served.server->account();
  EXPECT_LE(served.door.peers.connections_of("127.0.0.2"), 32U);
  EXPECT_GE(now.of(ConnectionEnd::made_room), 100U);
  silent.clear();
  EXPECT_TRUE(settled(served).balances());
}

// Headers that take long make room for who has something to say.
TEST(Door, TheSlowestHeaderGoesFirst) {
  const Served served({.most_connections = 4}, {.peers = {.connections = 4}});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<RawClient>(served.port()));
    slow.back()->send("GET / HT");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  RawClient idle(served.port());
  idle.send(get("/v2"));
  ASSERT_EQ(status_of(idle.receive()), 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(status_of(ask_once(served, get("/v2"))), 200);
  EXPECT_TRUE(slow[0]->is_closed(20'000));
  idle.send(get("/v2"));
  EXPECT_EQ(status_of(idle.receive()), 200) << "who was served before keeps its place";
}

TEST(Door, AnnouncedBytesTakeNoMemory) {
  const Served served({.most_body_bytes = 1 << 26}, {}, 1 << 26);
  std::vector<std::unique_ptr<RawClient>> announced;
  for (int i = 0; i < 50; ++i) {
    announced.push_back(std::make_unique<RawClient>(served.port(), 2));
    announced.back()->send(
        "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n{");
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)))), 200) << i;
  EXPECT_GT(served.budget.left(), served.budget.all() * 9 / 10);
  announced.clear();
  expect_all_given_back(served.budget);
  const DoorAccount account = settled(served);
  EXPECT_EQ(account.of(RequestEnd::lost), 50U);
  EXPECT_TRUE(account.balances());
}

TEST(Door, OneAddressDoesNotTakeAllMemory) {
  const Served served({.most_body_bytes = 1 << 20}, {.peers = {.bytes = 1 << 20}}, 1 << 22);
  const std::string half =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n" +
      std::string(500'000, ' ');
  std::vector<std::unique_ptr<RawClient>> greedy;
  const auto send_half = [&] {
    greedy.push_back(std::make_unique<RawClient>(served.port(), 2));
    greedy.back()->send(half);
  };
  // The first has nearly all that its address may; only then do the others come.
  send_half();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (served.budget.all() - served.budget.left() < 900'000 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (int i = 0; i < 7; ++i) {
    send_half();
    EXPECT_EQ(status_of(greedy.back()->receive()), 429) << i;
  }
  EXPECT_EQ(status_of(ask_once(served, post("/v2/models/m/infer", infer_body(served, 1)))), 200);
  greedy.clear();
  expect_all_given_back(served.budget);
  EXPECT_TRUE(settled(served).balances());
}

TEST(Door, ClientsOfHttp10AreToldThatTheConnectionStays) {
  const Served served;
  const auto asked = [&](const std::string& headers) {
    return ask_once(served, "GET /v2 HTTP/1.0\r\n" + headers + "\r\n");
  };
  EXPECT_TRUE(contains(asked("Connection: keep-alive\r\n"), "Connection: keep-alive"));
  EXPECT_TRUE(contains(asked(""), "Connection: close"));
}

// A text of some MB is read by another thread than the one that answers everybody.
TEST(Door, LongTextsStopNobody) {
  const Served served({.most_body_bytes = 1 << 25});
  std::string numbers = "[0";
  for (int i = 0; i < 4'000'000; ++i) numbers += ",0";
  const std::string long_one =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":)" + numbers + "]}]}";
  RawClient slow(served.port(), 2);
  std::thread sender([&] { slow.send(post("/v2/models/m/infer", long_one)); });
  int answers = 0;
  while (served.server->account().of(RequestEnd::answered) < 20 + static_cast<unsigned>(answers) &&
         answers < 100'000)
    if (status_of(ask_once(served, get("/v2/health/live"))) == 200)
      ++answers;
    else
      break;
  sender.join();
  EXPECT_EQ(status_of(slow.receive()), 400);
  expect_all_given_back(served.budget);
}

// --- accounts

TEST(Door, CountsEverythingOnceAndWritesItDown) {
  const ScratchFolder folder;
  const auto access = folder / "access", audit = folder / "audit";
  {
    const Served served({.most_body_bytes = 4096, .header_time = std::chrono::milliseconds(300)},
                        {.tokens = Tokens::from_text("correct-horse change operator", ""),
                         .access = {.file = access},
                         .audit = {.file = audit}});
    ask_once(served, get("/v2"));
    ask_once(served, get("/nothing"));
    ask_once(served, post("/v2/models/m/infer", std::string(5000, ' ')));
    ask_once(served, post("/v2/models/m/infer", "{}", "Content-Encoding: gzip\r\n"));
    ask_once(served, "no http\r\n\r\n");
    ask_once(served, "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n");
    ask_once(served, post("/v2/models/m/rollback", ""));
    ask_once(served, post("/v2/repository/models/m/load", "", "Authorization: Bearer correct-horse\r\n"));
    ask_once(served,
             "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1");  // slow
    {
      RawClient leaves(served.port());
      leaves.send("POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const DoorAccount account = settled(served);
    EXPECT_TRUE(account.balances());
    EXPECT_EQ(account.open, 0U);
    EXPECT_EQ(account.connections, 10U);
    EXPECT_EQ(account.requests, 10U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::answered, 200}), 2U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::answered, 404}), 1U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::too_large, 413}), 1U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::too_large, 431}), 1U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::encoded, 415}), 1U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::malformed, 400}), 1U);
    EXPECT_EQ(account.request_ends.at({RequestEnd::no_token, 401}), 1U);
    EXPECT_EQ(account.of(RequestEnd::slow), 1U);
    EXPECT_EQ(account.of(RequestEnd::lost), 1U);
    EXPECT_TRUE(contains(metrics_text(served.repository, {}, nullptr, &served.door),
                         R"(superstep_door_requests_total{door="http",end="malformed",status="400"} 1)"));
  }
  std::size_t requests = 0;
  for (const json& line : lines_of(access)) requests += line.contains("end");
  EXPECT_EQ(requests, 10U);
  EXPECT_TRUE(lines_of(access)[0]["peer"].get<std::string>().starts_with("127.0.0.1:"));
  const std::vector<json> changes = lines_of(audit);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_TRUE(contains(changes[0]["outcome"].get<std::string>(), "refused"));
  EXPECT_EQ(changes[1]["token"], "operator");
  EXPECT_TRUE(contains(changes[1]["outcome"].get<std::string>(), "done"));
  EXPECT_FALSE(contains(read_text_file(audit) + read_text_file(access), "correct-horse"))
      << "tokens are secret";
}

}  // namespace
}  // namespace superstep::edge
