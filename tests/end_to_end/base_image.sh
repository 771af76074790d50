#!/bin/sh
# Makes a stand-in for the image python:X.Y-slim from Debian's packages and a Python of this machine, where no image can be
# pulled. Needs root, debootstrap and buildah.
#   base_image.sh PREFIX IMAGE [BUILDAH OPTION…]     PREFIX: a Python's own folder (sys.base_prefix), not a virtual environment
set -eu
prefix=$1 image=$2
shift 2
python=$("$prefix/bin/python3" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase \
    --include=ca-certificates,libssl3,libffi8,zlib1g,libbz2-1.0,liblzma5,libsqlite3-0,libreadline8,libuuid1,libexpat1,libgomp1 \
    bookworm "$root"
mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/$python/site-packages"
cp "$prefix/bin/$python" "$root/usr/local/bin/"
ln -s "$python" "$root/usr/local/bin/python3"
ln -s "$python" "$root/usr/local/bin/python"
cp -a "$prefix"/lib/libpython3* "$root/usr/local/lib/" 2> /dev/null || true # absent where it is linked in
tar -C "$prefix/lib" --exclude="$python/site-packages" --exclude="$python/test" --exclude=__pycache__ -cf - "$python" |
    tar -C "$root/usr/local/lib" -xf -
# pip inside reaches the index that this machine is set up for
for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    if [ -f "$file" ]; then cp -L "$file" "$root$file"; fi
done
chroot "$root" ldconfig
chroot "$root" /usr/local/bin/python3 -m ensurepip --default-pip
container=$(buildah "$@" from scratch)
buildah "$@" add --quiet "$container" "$root" /
buildah "$@" config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin --env LANG=C.UTF-8 --cmd python3 "$container"
buildah "$@" commit --quiet --rm "$container" "$image"
