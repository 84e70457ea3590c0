/** Interface of a certificate issuer. */

export type Issued = {
  /** PEM, the certificate for the name first. It ends with the root only if clients do not have that. */
  readonly chain: string
  /** PEM (PKCS #8). */
  readonly key: string
}

export interface Issuer {
  /** A certificate of another issuer is replaced at once. */
  readonly id: string
  /** Issues a certificate with a new key for a name: a host, or a wildcard. Throws OrderRejected, or another error if a retry may soon help. */
  issue(name: string, signal: AbortSignal): Promise<Issued>
}

/** The issuer refused the order. It counts such orders, so a retry has to wait. */
export class OrderRejected extends Error {
  override readonly name = 'OrderRejected'
}

/** One wildcard serves all endpoints of a region. */
export function wildcardOf(region: string, baseDomain: string): string {
  return `*.${region}.${baseDomain}`
}
