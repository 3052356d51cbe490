// Options that what is asked would ignore are refused by name, before any work.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace superstep {
namespace {

struct Call {
  const char* arguments;
  const char* option;  // that is refused
};

TEST(IgnoredOptions, AreRefusedByName) {
  for (const Call& call : {
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --bath langevin", "--bath"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --bath-time 5", "--bath-time"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --pressure 5", "--pressure"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --ensemble nvt --pressure-time 5",
                "--pressure-time"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --compressibility 1e-5",
                "--compressibility"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --frame 2", "--frame"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --own-velocities", "--own-velocities"},
           Call{"md lennard-jones --lattice fcc:Ar:5.4:2 --out a --density 0.9", "--density"},
           Call{"md --list --steps 3", "--steps"},
           Call{"sample mcmc --leapfrog 5", "--leapfrog"},
           Call{"sample mcmc --jitter 0.5", "--jitter"},
           Call{"sample mcmc --method hmc --doublings 4", "--doublings"},
           Call{"sample mcmc --method laplace --accept 0.7", "--accept"},
           Call{"sample mcmc --stride 3", "--stride"},
           Call{"sample mcmc --window-warm-up 3", "--window-warm-up"},
           Call{"sample mcmc --checkpoint-seconds 3", "--checkpoint-seconds"},
           Call{"complete model --prompt Once --seed 4", "--seed"},
           Call{"complete model --prompt Once --top-k 4", "--top-k"},
           Call{"complete model --prompt Once --top-p 0.5", "--top-p"},
           Call{"report --results last --samples 3", "--samples"},
           Call{"report --results last --run a", "--run"},
           Call{"report --run a --published rows.csv", "--published"},
           Call{"generate braggnn --options --samples 3", "--samples"},
           Call{"generate --seed 3", "--seed"},
           Call{"baseline braggnn --options --input x", "--input"},
           Call{"workflow conductivity --options --out w", "--out"},
           Call{"design ald --example --seed 3", "--seed"},
           Call{"onnx export mlp --out e.onnx --optimizer sgd", "--optimizer"},
           Call{"onnx export mlp.onnx --out e.onnx --loss l1", "--loss"},
           Call{"onnx export mlp --out e.onnx --weights run --seed 4", "--seed"},
           Call{"profile mlp --on gc200 --runs 5", "--runs"},
           Call{"profile mlp --on gc200 --data x.npz", "--data"},
           Call{"train mlp --on gc200 --tune", "--tune"},
           Call{"train mlp --on reference --memory-limit 2G", "--memory-limit"},
           Call{"predict mlp --on cpu --stack pytorch-eager", "--stack"},
           Call{"predict mlp --on cpu --replicas 2", "--replicas"},
           Call{"predict mlp --on cpu --pipeline auto", "--pipeline"},
           Call{"predict mlp --on cpu --input-type u8", "--input-type"},
           Call{"predict mlp --on cpu --largest", "--largest"},
           Call{"predict mlp --on cpu --scaling weak", "--scaling"},
           Call{"predict mlp --mode infer --loaders 3", "--loaders"},
           Call{"predict mlp --mode infer --sample-seconds 0.1", "--sample-seconds"},
           Call{"predict mlp --replicas 16 --units 4", "--units"},
           Call{"predict mlp --replicas 3 --units 4", "--units"},
           Call{"predict mlp --pipeline 2,2 --units 5", "--units"},
           Call{"predict mlp --pipeline auto --units 5 --replicas 2", "--units"},
           Call{"infer mlp --on gc200 --pipeline 2,2 --units 3", "--units"},
           Call{"profile mlp --on gc200 --replicas 2 --units 3", "--units"},
           Call{"predict mlp --micro-batch 3 --batch 24", "--batch"},
           Call{"serve mlp --scale log", "--scale"},
           Call{"serve mlp --shared", "--shared"},
           Call{"serve mlp --stall 4", "--stall"},
           Call{"serve mlp --learn-when on-drift", "--learn-when"},
           Call{"serve mlp --learn-epochs 4", "--learn-epochs"},
           Call{"serve mlp --budget 4", "--budget"},
           Call{"serve mlp --regression x.h5", "--regression"},
           Call{"serve mlp --access-log-rate 4", "--access-log-rate"},
           Call{"serve mlp --log-bytes 4M", "--log-bytes"},
           Call{"sweep mlp --mode infer --loaders 3", "--loaders"},
           Call{"advise mlp --price gc200=3", "--price"},
           Call{"advise mlp --for latency --power gc200=80", "--power"},
           Call{"advise mlp --samples 1000", "--samples"},
       }) {
    const Outcome outcome = run_program(testing::TempDir(), call.arguments);
    EXPECT_EQ(outcome.code, 2) << call.arguments << "\n" << outcome.errors;
    EXPECT_NE(outcome.errors.find(std::string(call.option) + ":"), std::string::npos)
        << call.arguments << "\n"
        << outcome.errors;
  }
}

}  // namespace
}  // namespace superstep
