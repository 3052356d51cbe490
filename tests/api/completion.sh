# completion.sh SCRIPT: what bash would offer after some words.
set -eu
source "$1"

offers() {  # offers EXPECTED WORD...: the last word is being typed
  local expected=$1; shift
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _superstep || true
  case " ${COMPREPLY[*]-} " in
    *" $expected "*) ;;
    *) echo "after '$*' there is no '$expected': ${COMPREPLY[*]-}" >&2; exit 1 ;;
  esac
}
lacks() {
  local unexpected=$1; shift
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _superstep || true
  case " ${COMPREPLY[*]-} " in *" $unexpected "*) echo "after '$*' there is '$unexpected'" >&2; exit 1 ;; esac
}

offers train superstep tr
lacks train superstep in
offers --version superstep --
offers braggnn superstep train bra
offers --epochs superstep train braggnn --ep
lacks --epochs superstep infer braggnn --
offers check superstep onnx ch
offers --symbol superstep onnx check model.onnx --sy
offers bash superstep completion b
offers cpu superstep infer braggnn --on c
folder=$(mktemp -d)
touch "$folder/peaks.h5"
mkdir "$folder/peaks"
cd "$folder"
offers peaks.h5 superstep train braggnn --data pe
lacks peaks.h5 superstep train braggnn --out pe
offers peaks superstep train braggnn --out pe
lacks peaks.h5 superstep train braggnn --epochs pe
rm -r "$folder"
