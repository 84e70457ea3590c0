/**
 * A certificate authority of this installation, for development and closed networks. Clients have to trust its root.
 *
 * Law: the key of the root never leaves the database, where it is encrypted. A certificate whose key is on another machine names only
 * what that machine serves: for localhost it could stand in for control.
 */
// @peculiar/x509 needs it, and does not load it itself.
import 'reflect-metadata'
import { createPrivateKey, KeyObject, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Clock } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { getOrInsertSecret } from '#store/installation-secrets.ts'
import type { Db } from '#store/store.ts'
import type { Issued, Issuer } from './issuer.ts'
import { developmentCaLimits } from './limits.ts'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
/** So that a client on the same machine can use it without DNS. */
const localNames = ['localhost', '127.0.0.1', '::1']
export const developmentCaSecret = 'development-ca'

export type DevelopmentCaOptions = {
  readonly db: Db
  readonly keyring: Keyring
  readonly clock: Clock
  /** The host of control. */
  readonly host: string
  /** Whether every node runs on the machine of control. */
  readonly isOneMachine: boolean
}

export class DevelopmentCa implements Issuer {
  readonly id: string
  /** PEM, for clients. */
  readonly root: string
  readonly #certificate: X509Certificate
  readonly #key: webcrypto.CryptoKey
  readonly #options: DevelopmentCaOptions

  private constructor(certificate: X509Certificate, key: webcrypto.CryptoKey, options: DevelopmentCaOptions) {
    this.#certificate = certificate
    this.#key = key
    this.#options = options
    this.root = `${certificate.toString('pem')}\n`
    // Another one replaces the certificates at once, when the first node on another machine is about to join.
    this.id = `development ${certificate.subject}${options.isOneMachine ? ', one machine' : ''}`
  }

  /** The first process of the installation to call this creates the root. */
  static async open(options: DevelopmentCaOptions): Promise<DevelopmentCa> {
    const { db, keyring, clock } = options
    const pem = await getOrInsertSecret(db, keyring, developmentCaSecret, () => newRoot(clock.now()))
    const key = createPrivateKey(pem).toCryptoKey(algorithm, false, ['sign'])
    return new DevelopmentCa(new X509Certificate(certificateOf(pem)), key, options)
  }

  async issue(name: string): Promise<Issued> {
    const { clock, host, isOneMachine } = this.#options
    const keys = await newKeys()
    const names = [...new Set([name, ...(isOneMachine || name === host ? localNames : [])])]
    const certificate = await X509CertificateGenerator.create({
      ...validity(clock.now(), developmentCaLimits.certificateLifeMs),
      serialNumber: newSerial(),
      subject: `CN=${name}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#key,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension(names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }))),
        await AuthorityKeyIdentifierExtension.create(this.#certificate),
      ],
    })
    return { chain: `${certificate.toString('pem')}\n${this.root}`, key: toPem(keys.privateKey) }
  }
}

/** Returns the root that a secret of the name `developmentCaSecret` holds beside its key, in PEM. */
export function certificateOf(secret: string): string {
  return secret.slice(secret.indexOf('-----BEGIN CERTIFICATE'))
}

async function newRoot(now: number): Promise<string> {
  const keys = await newKeys()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(now, developmentCaLimits.rootLifeMs),
    serialNumber: newSerial(),
    // Installations must not be mistaken for each other in a list of roots.
    name: `CN=Inlet development CA ${randomBytes(4).toString('hex')}`,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return `${toPem(keys.privateKey)}${certificate.toString('pem')}\n`
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

function toPem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** RFC 5280: positive, at most 20 bytes. */
function newSerial(): string {
  return `01${randomBytes(15).toString('hex')}`
}

function validity(now: number, lifeMs: number): { readonly notBefore: Date; readonly notAfter: Date } {
  const notBefore = now - developmentCaLimits.backdatedMs
  return { notBefore: new Date(notBefore), notAfter: new Date(notBefore + lifeMs) }
}
