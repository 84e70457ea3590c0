import { createHash } from 'node:crypto'

/** Identifies a certificate chain in PEM. */
export function fingerprintOf(chain: string): string {
  return createHash('sha256').update(chain.trim()).digest('base64url')
}
