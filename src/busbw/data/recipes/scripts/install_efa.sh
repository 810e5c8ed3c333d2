# Installs the EFA software of AWS: driver, libfabric, and the plug-in of NCCL. As root, on each node.
# INSTALLER_OPTIONS: more words for the installer, such as --skip-kmod in a container.
read -r -a more <<<"${INSTALLER_OPTIONS:-}"
archive=aws-efa-installer-$release.tar.gz
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"

for name in "$archive" "$archive.sig" aws-efa-installer.key; do
    curl --fail --silent --show-error --location --remote-name "https://efa-installer.amazonaws.com/$name"
done
# Compare the fingerprint with the one in the EC2 User Guide, "Verify the EFA installer using a checksum or a signature".
export GNUPGHOME=$work/gnupg
mkdir -m 700 -- "$GNUPGHOME"
gpg --quiet --import aws-efa-installer.key
gpg --fingerprint
gpg --verify "$archive.sig" "$archive"
tar -xf "$archive"
cd aws-efa-installer
./efa_installer.sh -y "${more[@]}"

if ! compgen -G '/opt/amazon/ofi-nccl/lib/libnccl-net*.so' >/dev/null; then
    printf 'error: this installer brought no plug-in of NCCL to /opt/amazon/ofi-nccl/lib\n' >&2
    exit 1
fi
/opt/amazon/efa/bin/fi_info -p efa -t FI_EP_RDM
