# make run    sets everything up and does the main job: diffraction physics to a trained, served model
# make test   sets up, builds and runs every test
# make bench  sets up and measures this machine in under 20 minutes, beside the peers where they are found, and
#             writes a report
# make figures  measures every model beside its peers, minutes a model, and writes docs/figures.md anew
# make quality  trains every workload in minutes, three seeds each, and tables what it reaches beside what the
#             conventional methods do; what is there already is not made again (WORKLOAD=uno, SEEDS=1)
# make wheel    builds the Python package into dist/, in an environment of its own
# make sbom     writes what the program is made of, build/superstep.spdx.json (SPDX 2.3)
# make docs     builds the documentation site, build/site/index.html, and looks at its links
# make wings    builds, beside the program, the commands that are programs of their own: serve, stream, account, demo;
#               workflow, design, md, openmp (installations and packages have them)
# make help   lists the rest

BUILD ?= build
JOBS ?= $(shell nproc)
PROGRAM := $(BUILD)/superstep
RUN ?= run
REPORT ?= report

.PHONY: run test bench figures quality peers program wings build all_kernels install package sbom wheel uninstall docs setup format tidy clean help

run: said program
	@mkdir -p $(RUN)
	$(PROGRAM) generate braggnn --samples 77267 --seed 1 --set margin=1 --out $(RUN)/peaks.h5
	$(PROGRAM) train braggnn $(if $(wildcard $(RUN)/braggnn/config.json),--resume $(RUN)/braggnn,--data $(RUN)/peaks.h5 --epochs 40 --until error_px_mean=0.040 --out $(RUN)/braggnn)
	$(PROGRAM) report --run $(RUN)/braggnn --out $(REPORT)

.PHONY: said all_tests
said:
	@echo 'make run: installs packages where some are missing (with sudo), builds the program into $(BUILD)/, trains BraggNN'
	@echo '  into $(RUN)/ and writes $(REPORT)/index.html. From nothing about 13 minutes on two cores and 0.4 GB of disk;'
	@echo '  what is there already is not made again. Ctrl-C stops it, and the same call goes on.'

# The packages come while the compiler works. One test more than processors: some wait for what they have started.
test: all_kernels all_tests
	@{ tools/setup-oracles $(BUILD) || echo 'some packages that tests compare with are missing: those tests are skipped'; \
	  tools/setup-plugins cpu $(BUILD) || echo 'there is no PJRT plug-in: tests of devices are skipped'; \
	  tools/setup-python $(BUILD) || echo 'the Python package is not built and not tested'; } & \
	 ninja -C $(BUILD); status=$$?; wait; exit $$status
	cd $(BUILD) && ctest --output-on-failure -j$$(($(JOBS) + 1))

bench: program peers
	python3 bench/report.py --build $(BUILD) --out $(REPORT) $(if $(PUBLISHED),--published $(PUBLISHED))

figures: program peers
	python3 bench/run.py --build $(BUILD) --models $(or $(MODELS),all) --json $(BUILD)/bench.json
	python3 bench/figures.py --add $(BUILD)/bench.json

quality: program
	tools/quality --build $(BUILD) $(addprefix --workload ,$(WORKLOAD)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(WRITE),--write)

program: $(BUILD)/build.ninja
	@ninja -C $(BUILD) superstep

wings: $(BUILD)/build.ninja
	@ninja -C $(BUILD) superstep superstep_wings

build: $(BUILD)/build.ninja all_tests
	@ninja -C $(BUILD)

# A new build has kernels for this machine's vectors alone, unless others get it or tests go through all. Which ones a build
# folder has stays as it is until all are asked for.
KERNELS := native
test install package wheel: KERNELS := all
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release --log-level=WARNING -Wno-dev

# The program needs fewer packages than its tests: `make run` asks for no others.
NEEDS := program
test build bench figures quality tidy peers: NEEDS := all

$(BUILD)/build.ninja: CMakeLists.txt tools/setup
	@tools/setup $(NEEDS)
	@$(CONFIGURE) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DSUPERSTEP_KERNELS=$(KERNELS))

# A folder that was configured for the program alone has no tests until they are asked for.
all_tests: $(BUILD)/build.ninja
	@tools/setup
	@grep -qs '^GTest_DIR:PATH=/' $(BUILD)/CMakeCache.txt || $(CONFIGURE)

all_kernels: $(BUILD)/build.ninja
	@! grep -qs '^SUPERSTEP_KERNELS:STRING=native$$' $(BUILD)/CMakeCache.txt || $(CONFIGURE) -DSUPERSTEP_KERNELS=all

# PREFIX says where (default: /usr/local).
install: all_kernels
	@ninja -C $(BUILD) what_is_installed
	cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

# What the last installation wrote, and the folders that it leaves empty.
uninstall:
	@test -f $(BUILD)/install_manifest.txt || { echo 'nothing was installed from $(BUILD)'; exit 1; }
	@tr '\n' '\0' < $(BUILD)/install_manifest.txt | xargs -0 rm -f --
	@sed 's,/[^/]*$$,,' $(BUILD)/install_manifest.txt | sort -ru | while read -r folder; do \
	  rmdir --ignore-fail-on-non-empty -p -- "$$folder" 2> /dev/null || true; done
	@echo "removed $$(grep -c '' $(BUILD)/install_manifest.txt) files"

sbom: program
	tools/sbom --program $(PROGRAM) --out $(BUILD)/superstep.spdx.json

package: all_kernels
	@ninja -C $(BUILD) what_is_installed
	cd $(BUILD) && cpack -G DEB

wheel: all_kernels
	@ninja -C $(BUILD) superstep superstep_wings superstep_library
	@tools/wheel $(BUILD)

docs:
	@tools/site $(BUILD)

peers: $(BUILD)/build.ninja
	@ninja -C $(BUILD) superstep_contender onnxruntime_peer peak
	@tools/setup-peers $(BUILD) || echo 'some peers are missing: the table names those it found'

setup:
	@tools/setup

format:
	tools/format

tidy: build
	tools/tidy

clean:
	rm -rf $(BUILD)

help:
	@sed -n 's/^# \(make \|  \)/\1/p' Makefile; echo "make build, install PREFIX=..., uninstall, package, setup, format, tidy, clean"
