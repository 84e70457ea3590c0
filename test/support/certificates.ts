/** Makes certificates for the times and names of a test. */
// @peculiar/x509 needs it, and does not load it itself.
import 'reflect-metadata'
import { KeyObject, webcrypto } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** The name may be an address. */
export type TestCertificate = { readonly name: string; readonly fromMs: number; readonly toMs: number }

/** Writes a self-signed certificate and its key to these files. */
export async function writeCertificate(
  { certificateFile, keyFile }: { readonly certificateFile: string; readonly keyFile: string },
  { name, fromMs, toMs }: TestCertificate,
): Promise<void> {
  const { cert, key } = await makeCertificate({ names: [name], fromMs, toMs })
  writeFileSync(certificateFile, `${cert}\n`)
  writeFileSync(keyFile, key)
}

/** Returns a self-signed certificate and its key in PEM. */
export async function makeCertificate({
  names,
  fromMs,
  toMs,
}: Omit<TestCertificate, 'name'> & { readonly names: readonly string[] }): Promise<{
  readonly cert: string
  readonly key: string
}> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=inlet',
    notBefore: new Date(fromMs),
    notAfter: new Date(toMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new SubjectAlternativeNameExtension(names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })))],
  })
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' })
  return { cert: certificate.toString('pem'), key: key.toString() }
}
