{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "kiln";
  version = "0.2.0";
  src = pkgs.lib.cleanSource ../..;
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];
  buildInputs = [ pkgs.zlib pkgs.jansson pkgs.zstd ];
  cmakeFlags = [ "-DKILN_TESTS=OFF" ];
  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/kiln linreg ../data/flights.csv.gz --target arr_delay -o flights.kiln
  '';
  meta = {
    description = "Machine learning on large sparse and dense data at memory speed";
    license = pkgs.lib.licenses.asl20;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "kiln";
  };
}
