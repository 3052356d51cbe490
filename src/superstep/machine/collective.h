// Collectives over many units: those of a group (a host's chips, a pod) are joined by links, groups by a
// network (InfiniBand, Ethernet, gateways).
#pragma once

namespace superstep::machine {

struct Fabric {
  double group_units = 0;        // joined by links; 0: all there are
  double rate = 0, latency = 0;  // B/s one way of a unit's links, s of a step
  double network_rate = 0;       // B/s one way of a unit's share of its group's network
  double network_latency = 0;    // s of a step between groups
};

// Seconds of an all-reduce of so many bytes a unit: the better of a ring and a double tree where one group
// holds all units; else reduced and scattered within each group, all-reduced between groups by every unit
// with its part, and gathered within each group again.
double all_reduce_seconds(double bytes, int units, const Fabric& fabric);

// A ring's 2 (n - 1) steps of a share each, and a double tree's, which takes all bytes twice in 2 log2(n)
// steps (P. Sanders et al., "Two-tree algorithms for full bandwidth broadcast", 2009).
double ring_all_reduce(double bytes, int units, double rate, double latency);
double tree_all_reduce(double bytes, int units, double rate, double latency);

}  // namespace superstep::machine
