// Models that somebody has signed: a list of digests, as sha256sum writes it, with an Ed25519 signature
// beside it.
#pragma once

#include <filesystem>
#include <string>

namespace superstep::edge {

// `what`: the folder of a run, whose list is SHA256SUMS in it and names config.json and best.safetensors at
// least, or a model file, whose list is FILE.sha256. The signature is the list's name with ".sig"; `key` the
// public key, PEM. Throws Error: bad_file where the signature or a digest is another, or a file that counts
// is not in the list; what reading a file throws.
void require_signed(const std::string& what, const std::filesystem::path& key);

}  // namespace superstep::edge
