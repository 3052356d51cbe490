#include "superstep/cli/serve/doors.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "superstep/base/option_range.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/edge/kafka/kafka.h"

namespace superstep::cli {
namespace {

edge::Tokens tokens_of(const ServeArguments& a) {
  edge::Tokens tokens = a.token_file.empty() ? edge::Tokens() : edge::Tokens::read(a.token_file);
  if (a.protect.empty()) return tokens;
  const auto scopes = edge::scopes_of(a.protect);
  if (!scopes)
    throw Error(ErrorCode::invalid_argument, "is no list of read, infer, change", "--protect " + a.protect);
  if (tokens.empty())
    throw Error(ErrorCode::invalid_argument, "nobody could come in without a token", "--protect",
                "give --token-file FILE with tokens");
  tokens.protect(*scopes);
  return tokens;
}

bool is_open_to_others(const std::string& address) { return !edge::Address{address, 0}.is_loopback(); }

// Where secrets lie open, whoever has an account here has them: said, not refused, since containers are given
// theirs so.
void warn_of_open_secrets(const ServeArguments& a) {
  for (const std::string& file : {a.token_file, a.tls_key, a.curve.key}) {
    struct stat status {};
    if (!file.empty() && ::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0)
      tell(fmt::format("superstep: warning: everybody on this machine may read {}: chmod 600 it\n", file));
  }
}

// Streams have their own keys.
void warn_of_open_streams(const edge::ReceiverSettings& stream) {
  if (stream.curve) return;
  const auto warn = [](edge::SocketKind kind, const std::string& address, const char* may) {
    if (address.empty() || edge::is_kafka(address) || !edge::listens_at(kind, address) ||
        edge::is_of_this_machine(address))
      return;
    tell(
        fmt::format("superstep: warning: whoever reaches {} may {}: --curve-key with --curve-clients lets in "
                    "those alone that are meant\n",
                    address, may));
  };
  warn(edge::SocketKind::pull, stream.pull, "send frames");
  warn(edge::SocketKind::publish, stream.publish, "read answers");
}

}  // namespace

edge::TlsFiles tls_of(const ServeArguments& a) {
  const edge::TlsFiles files{
      .certificate = a.tls_certificate, .key = a.tls_key, .client_ca = a.tls_client_ca};
  if (files) static_cast<void>(edge::read_tls(files));
  return files;
}

// One address never has all: half, where nothing else is said.
edge::DoorSettings door_of(const ServeArguments& a) {
  edge::DoorSettings door{.tokens = tokens_of(a), .hosts = a.hosts};
  if (const edge::TlsFiles tls = tls_of(a))
    for (std::string& name : edge::names_of_certificate(tls)) door.hosts.push_back(std::move(name));
  door.peers.connections =
      static_cast<std::size_t>(a.peer_connections > 0 ? a.peer_connections : std::max(1, a.connections / 2));
  door.peers.requests = static_cast<std::size_t>(a.peer_requests);
  door.peers.bytes = a.peer_memory.empty() ? bytes_of(a.memory) / 2 : bytes_of(a.peer_memory);
  door.access = {.file = a.access_log,
                 .bytes = bytes_of(a.log_bytes),
                 .lines_per_second = static_cast<std::uint64_t>(a.access_log_rate)};
  door.audit = {.file = a.audit_log, .bytes = bytes_of(a.log_bytes)};
  return door;
}

// Addresses that others reach: what they may do there, and who reads along.
void add_renewals(const ServeArguments& a, edge::ServeSettings& settings) {
  if (!a.token_file.empty())
    settings.renewals.push_back(
        {"--token-file", [a](edge::Server&, edge::Door& door) { door.renew(tokens_of(a)); }});
  if (settings.server.tls)
    settings.renewals.push_back(
        {"--tls-cert", [](edge::Server& server, edge::Door&) { server.renew_tls(); }});
}

void warn_of_open_doors(const ServeArguments& a, const edge::ServeSettings& settings) {
  warn_of_open_secrets(a);
  warn_of_open_streams(settings.stream);
  const bool open = is_open_to_others(settings.server.address) ||
                    (settings.grpc && is_open_to_others(settings.grpc->address));
  if (!open) return;
  const edge::Tokens& tokens = settings.door.tokens;
  const bool known_alone = !settings.server.tls.client_ca.empty();
  if (!known_alone && (!tokens.needs(edge::Scope::infer) || !tokens.needs(edge::Scope::read)))
    tell(
        "superstep: warning: whoever reaches this server may ask its models and read what it shows: "
        "--protect "
        "read,infer with --token-file, or --tls-client-ca, lets in those alone that are meant\n");
  if (!settings.server.tls && !tokens.empty())
    tell(
        "superstep: warning: tokens and data go over the network in the clear: --tls-cert and --tls-key "
        "encrypt them\n");
}

void declare_door(CLI::App& command, ServeArguments& a) {
  command
      .add_option("--token-file", a.token_file,
                  "tokens, one per line: TOKEN, or TOKEN SCOPES NAME with scopes read,infer,change")
      ->type_name("FILE");
  command
      .add_option("--protect", a.protect,
                  "what needs a token, beside changes: read (what there is, metrics, pages), infer (a model)")
      ->type_name("SCOPES");
  command
      .add_option("--host", a.hosts,
                  "a further name under which clients reach it; '*': any name. May be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--tls-cert", a.tls_certificate,
                  "HTTPS, and gRPC with TLS: the certificate and its chain, PEM")
      ->type_name("FILE");
  command.add_option("--tls-key", a.tls_key, "its key, PEM")->type_name("FILE");
  command
      .add_option("--tls-client-ca", a.tls_client_ca,
                  "let those in alone who show a certificate that one of these signed, PEM")
      ->type_name("FILE");
  command
      .add_option("--verify-key", a.verify_key,
                  "serve only what this public key (Ed25519, PEM) has signed: SHA256SUMS, FILE.sha256")
      ->type_name("FILE");
  command.add_option("--access-log", a.access_log, "every request as a line of JSON")->type_name("FILE");
  command
      .add_option("--access-log-rate", a.access_log_rate,
                  "lines per second at most; more are counted there. 0: all are written")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      .add_option("--audit-log", a.audit_log,
                  "every change of what is served, who asked for it and what came of it, as a line of JSON")
      ->type_name("FILE");
  command.add_option("--log-bytes", a.log_bytes, "size at which a log is rotated; five are kept")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
}

}  // namespace superstep::cli
