class Kiln < Formula
  desc "Machine learning on large sparse and dense data at memory speed"
  license "Apache-2.0"
  head Pathname(__dir__).parent.parent.to_s, using: :git, branch: "main"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "jansson"
  depends_on :linux
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DKILN_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"t.csv").write "x,y\n1,2\n2,4\n3,6\n4,8\n"
    system bin/"kiln", "linreg", "t.csv", "--target", "y", "-o", "t.kiln"
    assert_match "linreg", shell_output("#{bin}/kiln info t.kiln")
  end
end
