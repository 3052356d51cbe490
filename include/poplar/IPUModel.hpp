// A machine of the caller's own choosing: numbers of a chip, to be changed before a device is made of them.
#ifndef poplar_IPUModel_hpp
#define poplar_IPUModel_hpp

#include <cstdint>
#include <poplar/Device.hpp>
#include <poplar/OptionFlags.hpp>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

struct IPUModel {
  enum class RelativeSyncDelayType { AUTO, NO_DELAY };

  // "ipu1" (1,216 tiles of 256 KiB), "ipu2" or "ipu21" (1,472 tiles of 624 KiB).
  explicit IPUModel(const char* version = "ipu2");
  ~IPUModel();

  // Throws invalid_machine_model, naming the number that cannot be.
  Device createDevice(const OptionFlags& options = {}, bool accurateHalf = false,
                      unsigned deviceId = 0) const;

  std::string IPUVersion;
  unsigned numIPUs;
  unsigned tilesPerSuperTile;
  unsigned tilesPerIPU;
  unsigned numWorkerContexts;
  unsigned memoryBytesPerTile;
  double tileClockFrequency;  // Hz
  unsigned exchangeBytesPerCycle;
  unsigned memcpyBytesPerCycle;
  unsigned instructionBytes;
  bool supportsSuperTileSendReceive;
  unsigned interleavedMemoryElementIndex;
  unsigned minIPUSyncDelay;
  RelativeSyncDelayType relativeSyncDelay;
  unsigned globalSyncCycles;
  std::vector<GlobalExchangeConstraint> globalExchangeConstraints;
  unsigned dataPathWidth;  // bits
  unsigned fp16ConvUnitMaxPipelineDepth;
  unsigned fp16ConvUnitInputLoadElemsPerCycle;
  unsigned fp32ConvUnitInputLoadElemsPerCycle;
  unsigned fp16InFp16OutConvUnitsPerTile;
  unsigned fp16InFp32OutConvUnitsPerTile;
  unsigned fp32InFp32OutConvUnitsPerTile;
  unsigned convUnitCoeffLoadBytesPerCycle;
  bool compileIPUCode;  // without effect: vertices run as the host's code
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
