#include "superstep/cli/command.h"
#include "superstep/cli/shared/bench_serve.h"

namespace superstep::cli {

void declare_serve_bench(CLI::App& command, ServeBenchArguments& a) {
  command
      .add_option(
          "--request-rate", a.request_rates,
          "serve: requests per second, due whatever the server does; latency counts from when they were due")
      ->type_name("R,...")
      ->delimiter(',')
      ->check(number_from(1e-3, 1e7));
  command
      .add_option("--concurrency", a.concurrency,
                  "serve: requests in flight, each sent when the one before is answered (default: 1)")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 20000));
  command.add_option("--arrive", a.arrive, "serve: arrivals, poisson or constant")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->type_name("HOW")
      ->capture_default_str();
  command.add_option("--connections", a.connections, "serve: connections that requests due at a rate share")
      ->type_name("N")
      ->check(CLI::Range(1, 20000))
      ->capture_default_str();
  command.add_option("--rows", a.rows, "serve: rows per request")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--tensors", a.tensors, "serve: send tensors as binary or json")
      ->check(CLI::IsMember({"binary", "json"}))
      ->type_name("FORM")
      ->capture_default_str();
  command.add_option("--token-file", a.token_file, "serve: send the first token of this file")
      ->type_name("FILE");
  command
      .add_option("--tls-ca", a.ca,
                  "serve, https or grpcs: whom to trust, PEM (default: whom this machine trusts)")
      ->type_name("FILE");
  command.add_option("--tls-cert", a.certificate, "serve: our own certificate, PEM, where it is asked for")
      ->type_name("FILE");
  command.add_option("--tls-key", a.key, "serve: the key of --tls-cert, PEM")->type_name("FILE");
}

}  // namespace superstep::cli
