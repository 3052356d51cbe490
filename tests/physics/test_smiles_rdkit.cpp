#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "superstep/physics/chemistry/polymer_grammar.h"
#include "superstep/physics/chemistry/smiles.h"
#include "tests/python.h"

namespace superstep::data {
namespace {

constexpr const char* molecules[] = {
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
    "c1ccc2[nH]ccc2c1",
    "c1cc[o+]cc1",
    "O=S(=O)(O)c1ccc(cc1)N",
    "FC(F)(F)S(=O)(=O)Oc1cccc2ncccc12",
    "[13CH4]",
    "[NH4+].[Cl-]",
    "CP(c1ccccc1)(c1ccccc1)=O",
    "c1ccccc1c1ccccc1",
    "OB(O)c1ccc2[nH]ncc2c1",
    "C1CC2CCC1C2",
    "Brc1ccc2ncccc2c1",
    "Cc1nn(C2CCCCO2)c2ccc(B3OC(C)(C)C(C)(C)O3)cc12",
    "[O-][N+](=O)c1ccccc1",
    "C#N",
    "CC(C)(C)P(C(C)(C)C)c1ccc(cc1)N(C)C",
    "[Fe+2].[O-]S(=O)(=O)[O-]",
    "C12C3C4C1C5C2C3C45",
    "*CC(*)c1ccccc1",
};

struct Facts {
  int atoms = 0, bonds = 0, hydrogens = 0, ring_bonds = 0, aromatic_bonds = 0;
  double weight = 0;
};

Facts facts_of(const Molecule& molecule) {
  Facts facts{molecule.atom_count(), molecule.bond_count(), 0, 0, 0, molecular_weight(molecule)};
  for (const Atom& atom : molecule.atoms()) facts.hydrogens += atom.hydrogens;
  for (const Bond& bond : molecule.bonds()) {
    facts.ring_bonds += bond.in_ring;
    facts.aromatic_bonds += bond.order == BondOrder::aromatic;
  }
  return facts;
}

// Atoms, bonds, hydrogens, rings, aromatic bonds and weight as RDKit sees them; and our canonical text is the
// same molecule to it.
TEST(SmilesAgainstRdkit, Agrees) {
  const std::string python = python_with("rdkit");
  if (python.empty())
    GTEST_SKIP() << "no Python with the packages rdkit was found: tools/setup-oracles installs them";
  const ScratchFolder folder;
  std::vector<std::string> texts(std::begin(molecules), std::end(molecules));
  for (std::uint64_t place = 0; place < repeat_unit_count(); place += 37)
    texts.push_back(repeat_unit(place).smiles);
  std::string script = R"(from rdkit import Chem
from rdkit.Chem.Descriptors import MolWt
def show(text, ours):
    m = Chem.MolFromSmiles(text)
    bonds = list(m.GetBonds())
    w = sum(Chem.GetPeriodicTable().GetAtomicWeight(a.GetAtomicNum()) + 1.008 * a.GetTotalNumHs() for a in m.GetAtoms())
    print(m.GetNumAtoms(), len(bonds), sum(a.GetTotalNumHs() for a in m.GetAtoms()), sum(b.IsInRing() for b in bonds),
          sum(b.GetBondType() == Chem.BondType.AROMATIC for b in bonds), w,
          int(Chem.CanonSmiles(text) == Chem.CanonSmiles(ours)))
)";
  for (const std::string& text : texts)
    script += "show('" + text + "', '" + canonical_smiles(parse_smiles(text)) + "')\n";
  const auto output = python_output(python, folder, script);
  ASSERT_TRUE(output.has_value());
  std::istringstream lines(*output);
  for (const std::string& text : texts) {
    Facts theirs;
    int same = 0;
    lines >> theirs.atoms >> theirs.bonds >> theirs.hydrogens >> theirs.ring_bonds >> theirs.aromatic_bonds >>
        theirs.weight >> same;
    ASSERT_TRUE(lines) << text;
    const Facts ours = facts_of(parse_smiles(text));
    EXPECT_EQ(ours.atoms, theirs.atoms) << text;
    EXPECT_EQ(ours.bonds, theirs.bonds) << text;
    EXPECT_EQ(ours.hydrogens, theirs.hydrogens) << text;
    EXPECT_EQ(ours.ring_bonds, theirs.ring_bonds) << text;
    // RDKit makes rings aromatic that were written with double bonds; never the other way round.
    EXPECT_LE(ours.aromatic_bonds, theirs.aromatic_bonds) << text;
    EXPECT_NEAR(ours.weight, theirs.weight, 0.02) << text;
    EXPECT_EQ(same, 1) << text << " became " << canonical_smiles(parse_smiles(text));
  }
}

}  // namespace
}  // namespace superstep::data
