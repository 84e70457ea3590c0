/**
 * Root certificates, and the pin by which one is recognised.
 *
 * Uses `node:crypto` alone: the module `tls` takes 4 MB of a process.
 */
import { createHash, X509Certificate } from 'node:crypto'

const block = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Returns the certificates of a PEM file. Throws if one cannot be read. */
export function parseCertificates(pem: Buffer): readonly X509Certificate[] {
  return (pem.toString().match(block) ?? []).map((text) => new X509Certificate(text))
}

/**
 * Returns the root that a chain ends with, or undefined if it ends with another certificate. Chains of public CAs end before the root,
 * because every client has it.
 */
export function rootOf(chain: Buffer): X509Certificate | undefined {
  const last = parseCertificates(chain).at(-1)
  return last?.checkIssued(last) === true && last.verify(last.publicKey) ? last : undefined
}

/** SHA-256 of a certificate, in base64url: 43 characters. */
export function pinOf({ raw }: X509Certificate): string {
  return createHash('sha256').update(raw).digest('base64url')
}
