#include "superstep/cli/serve/curve_options.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"

namespace superstep::cli {

void declare_curve(CLI::App& command, CurveArguments& a) {
  command
      .add_option(
          "--curve-key", a.key,
          "encrypt the stream (ZeroMQ CURVE) with this secret key: X25519 PEM, or a ZeroMQ certificate")
      ->type_name("FILE");
  command
      .add_option("--curve-server", a.server,
                  "the public key of the end that we connect to; another one is not spoken with")
      ->type_name("FILE");
  command
      .add_option(
          "--curve-clients", a.clients,
          "public keys of those who may connect: PEM, certificates, or lines KEY NAME; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

std::shared_ptr<edge::Curve> curve_of(const CurveArguments& a, StreamEnds ends) {
  const edge::CurveFiles files{
      .key = a.key, .server = a.server, .clients = {a.clients.begin(), a.clients.end()}};
  if (!files.given()) return nullptr;
  const auto refuse = [](const char* what, const char* option, const char* hint) {
    throw Error(ErrorCode::invalid_argument, what, option, hint);
  };
  if (!ends.listen && !ends.connect)
    refuse("is of a stream over ZeroMQ, and there is none", "--curve-key", "give --pull tcp://HOST:PORT");
  if (!ends.connect && !a.server.empty())
    refuse("nothing connects here: others do", "--curve-server", "--curve-clients has their keys");
  if (!ends.listen && !a.clients.empty())
    refuse("nobody connects here: this end does", "--curve-clients",
           "--curve-server has the other end's key");
  const std::shared_ptr<edge::Curve> curve = edge::read_curve(files);
  curve->on_refusal = [](const std::string& what) { tell(fmt::format("superstep: warning: {}\n", what)); };
  return curve;
}

}  // namespace superstep::cli
