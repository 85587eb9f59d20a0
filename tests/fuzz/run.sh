#!/bin/sh
# Fuzzes every loader: tests/fuzz/run.sh [SECONDS each, default 600].  Needs clang with libFuzzer;
# builds into build/fuzz and stops at the first crash, whose input it leaves there.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
out=build/fuzz
mkdir -p "$out"
cxx=${CXX:-clang++}
flags="-std=c++20 -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
  -I. -isystem /usr/include/eigen3 -DGRADWIRE_TABLES_DIR=\"$PWD/models/tables\""
printf '%s\n' dataset dataset_formats gzip_reader input_file idx cifar time_series text synthetic random \
  layer_table table_file safetensors |
  xargs -P "$(nproc)" -I{} sh -c '[ "$1/{}.o" -nt "models/{}.cpp" ] ||
    $2 $3 -c "models/{}.cpp" -o "$1/{}.o"' sh "$out" "$cxx" "$flags"
for harness in tests/fuzz/*_fuzz.cpp; do
  name=$(basename "$harness" .cpp)
  $cxx $flags -fsanitize=fuzzer,address,undefined "$harness" "$out"/*.o -lz -o "$out/$name"
  mkdir -p "$out/corpus-$name"
  case $name in
    layer_table_fuzz) cp models/tables/vgg16.json "$out/corpus-$name" ;;
    time_series_fuzz)
      printf '@dimensions 2\n@classLabel true a b\n@data\n1,2:3,?:a\n4:5:b\n' \
        > "$out/corpus-$name/seed" ;;
    text_fuzz) printf 'good film\t1\nbad\t0\nso so\t1\nno\t0\nyes\t1\n' > "$out/corpus-$name/seed" ;;
    safetensors_fuzz)
      printf '\74\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}   ' \
        > "$out/corpus-$name/seed" ;;
    idx_fuzz)
      printf '\30\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdefgh\0\0\10\1\0\0\0\2\0\1' \
        > "$out/corpus-$name/seed" ;;
    cifar_fuzz) head -c 6146 /dev/zero > "$out/corpus-$name/seed" ;;
  esac
  if ! "$out/$name" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 \
    -artifact_prefix="$out/$name-" "$out/corpus-$name" > "$out/$name.log" 2>&1; then
    tail -40 "$out/$name.log"
    exit 1
  fi
  echo "$name: no crash in $seconds s"
done
