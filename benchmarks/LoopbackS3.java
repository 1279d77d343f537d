import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A read-only file system `s3a` over a server on loopback, for benchmarks: unsigned ranges and
 * listings. It stands for hadoop-aws, which cannot be installed here. As that one does, it reads
 * at most one block ahead of what is asked, and asks for the length of a file unless it is told.
 */
public class LoopbackS3 extends FileSystem {
  private static final int AHEAD_BYTES = 64 * 1024;
  private static final long BLOCK_BYTES = 128L << 20;
  private URI uri;
  private String bucket;
  private Path workingDirectory;

  @Override public String getScheme() { return "s3a"; }

  @Override public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    bucket = conf.get("fs.s3a.endpoint") + "/" + name.getAuthority();
    workingDirectory = new Path(uri + "/");
  }

  @Override public URI getUri() { return uri; }

  @Override public FileStatus getFileStatus(Path path) throws IOException {
    HttpURLConnection answer = ask("HEAD", address(path), null);
    if (answer.getResponseCode() == 200) {
      return status(path, answer.getContentLengthLong(), false);
    }
    if (listStatus(path).length == 0) {
      throw new FileNotFoundException(path.toString());
    }
    return status(path, 0, true);
  }

  @Override public FileStatus[] listStatus(Path path) throws IOException {
    String key = makeQualified(path).toUri().getPath().substring(1);
    String prefix = key.isEmpty() ? "" : key + "/";
    List<FileStatus> found = new ArrayList<>();
    String next = "";
    do {
      String listing = new String(ask("GET", bucket + "?list-type=2&delimiter=%2F&prefix="
          + URLEncoder.encode(prefix, StandardCharsets.UTF_8) + next, null)
          .getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      Matcher files = Pattern.compile("<Contents><Key>(.*?)</Key>.*?<Size>(\\d+)</Size>", Pattern.DOTALL)
          .matcher(listing);
      while (files.find()) {
        found.add(status(new Path(uri + "/" + files.group(1)), Long.parseLong(files.group(2)), false));
      }
      Matcher folders = Pattern.compile("<CommonPrefixes><Prefix>(.*?)/</Prefix>").matcher(listing);
      while (folders.find()) {
        found.add(status(new Path(uri + "/" + folders.group(1)), 0, true));
      }
      Matcher token = Pattern.compile("<NextContinuationToken>(.*?)<").matcher(listing);
      next = token.find()
          ? "&continuation-token=" + URLEncoder.encode(token.group(1), StandardCharsets.UTF_8) : null;
    } while (next != null);
    if (found.isEmpty()) {
      HttpURLConnection file = ask("HEAD", address(path), null);
      if (file.getResponseCode() == 200) {
        found.add(status(path, file.getContentLengthLong(), false));
      }
    }
    return found.toArray(new FileStatus[0]);
  }

  @Override public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Ranges(address(path), getFileStatus(path).getLen()));
  }

  @Override protected java.util.concurrent.CompletableFuture<FSDataInputStream> openFileWithOptions(
      Path path, org.apache.hadoop.fs.impl.OpenFileParameters parameters) throws IOException {
    FileStatus known = parameters.getStatus();
    long length = known == null ? getFileStatus(path).getLen() : known.getLen();
    return java.util.concurrent.CompletableFuture.completedFuture(
        new FSDataInputStream(new Ranges(address(path), length)));
  }

  private FileStatus status(Path path, long length, boolean isFolder) {
    return new FileStatus(length, isFolder, 1, BLOCK_BYTES, 0, makeQualified(path));
  }

  private String address(Path path) {
    StringBuilder address = new StringBuilder(bucket);
    for (String name : makeQualified(path).toUri().getPath().split("/")) {
      if (!name.isEmpty()) {
        address.append('/').append(URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20"));
      }
    }
    return address.toString();
  }

  private static HttpURLConnection ask(String method, String address, String range) throws IOException {
    HttpURLConnection request = (HttpURLConnection) URI.create(address).toURL().openConnection();
    request.setRequestMethod(method);
    if (range != null) {
      request.setRequestProperty("Range", range);
    }
    return request;
  }

  private static final class Ranges extends FSInputStream {
    private final String address;
    private final long length;
    private long position;
    private byte[] block = new byte[0];
    private long blockStart;

    Ranges(String address, long length) {
      this.address = address;
      this.length = length;
    }

    @Override public void seek(long target) { position = target; }

    @Override public long getPos() { return position; }

    @Override public boolean seekToNewSource(long target) { return false; }

    @Override public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
    }

    @Override public int read(byte[] target, int offset, int count) throws IOException {
      if (count == 0 || position >= length) {
        return count == 0 ? 0 : -1;
      }
      if (position < blockStart || position >= blockStart + block.length) {
        long stop = Math.min(length, position + Math.max(count, AHEAD_BYTES));
        block = ask("GET", address, "bytes=" + position + "-" + (stop - 1)).getInputStream().readAllBytes();
        blockStart = position;
        if (block.length == 0) {
          throw new EOFException(address);
        }
      }
      int copied = (int) Math.min(count, blockStart + block.length - position);
      System.arraycopy(block, (int) (position - blockStart), target, offset, copied);
      position += copied;
      return copied;
    }
  }

  @Override public Path getWorkingDirectory() { return workingDirectory; }

  @Override public void setWorkingDirectory(Path path) { workingDirectory = path; }

  @Override public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite,
      int bufferSize, short replication, long blockSize, Progressable progress) {
    throw new UnsupportedOperationException("read-only");
  }

  @Override public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
    throw new UnsupportedOperationException("read-only");
  }

  @Override public boolean rename(Path from, Path to) { throw new UnsupportedOperationException("read-only"); }

  @Override public boolean delete(Path path, boolean recursive) { throw new UnsupportedOperationException("read-only"); }

  @Override public boolean mkdirs(Path path, FsPermission permission) { throw new UnsupportedOperationException("read-only"); }
}
