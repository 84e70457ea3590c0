/**
 * The root certificates that the certificate of control must chain to.
 *
 * Owns: `node/control-ca.pem`: the root that the join token pins, fetched from control once. Does not own: the pin.
 * Law: a certificate that control sent without proof is used only if its hash is the pin. Nothing secret is sent before.
 */
import { KiB } from '#lib/bytes.ts'
import { readNamed } from '#lib/certificate.ts'
import type { Clock } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { sendRequest } from '#lib/http.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { parseCertificates, pinOf } from '#lib/root-certificate.ts'

/** Bounds the response: the server is not authenticated yet. */
const rootBytesMax = 64 * KiB

export type ControlRootOptions = {
  /** Roots that the operator chose. Then nothing is fetched. */
  readonly caFile: string | null
  /** Where a fetched root is kept. */
  readonly rootFile: string
  /** Pin of the root, from the join token. Null: nothing is fetched. */
  readonly pin?: string | null
  readonly files: Files
  readonly clock: Clock
}

export class ControlRoot {
  readonly #options: ControlRootOptions
  #ca: Buffer | undefined

  private constructor(options: ControlRootOptions, ca: Buffer | undefined) {
    this.#options = options
    this.#ca = ca
  }

  /** Throws UserError if there is a file that cannot be read. */
  static async open(options: ControlRootOptions): Promise<ControlRoot> {
    const { caFile, rootFile, files } = options
    const ca = caFile === null ? readKept(files, rootFile) : readNamed('INLET_CONTROL_CA_FILE', caFile)
    return new ControlRoot(options, await ca)
  }

  /** PEM. Undefined: the roots that Node trusts. */
  get ca(): Buffer | undefined {
    return this.#ca
  }

  /** Reads the kept root again: the other process of the node may have fetched it. */
  async reload(): Promise<void> {
    const { caFile, rootFile, files } = this.#options
    if (caFile === null) this.#ca = (await readKept(files, rootFile)) ?? this.#ca
  }

  /** Fetches the pinned root, unless this node has it. Throws if `url` serves another one. */
  async establish(url: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { caFile, rootFile, pin = null, files, clock } = this.#options
    if (caFile !== null || pin === null || !url.startsWith('https:')) return
    if (this.#ca !== undefined && findPinned(this.#ca, pin) !== undefined) return
    const { status, body } = await sendRequest(`${url}/internal/v1/ca`, {
      method: 'GET',
      headers: {},
      acceptsAnyServer: true,
      responseBytesMax: rootBytesMax,
      signal: AbortSignal.any([signal, clock.timeout(timeoutMs)]),
    })
    const root = status === 200 ? findPinned(body, pin) : undefined
    if (root === undefined) throw new UnknownRootError(url)
    await writeDurably(files, rootFile, root)
    this.#ca = root
  }
}

export class UnknownRootError extends Error {
  override readonly name = 'UnknownRootError'

  constructor(url: string) {
    super(
      `the server at ${url} is not the control that made the join token: it does not serve the root certificate that the token pins; check the address, or create another token`,
    )
  }
}

async function readKept(files: Files, path: string): Promise<Buffer | undefined> {
  const text = await readTrimmed(files, path)
  return text === undefined ? undefined : Buffer.from(`${text}\n`)
}

/** Returns the certificate with this pin, in PEM. Text that is not a certificate has none. */
function findPinned(pem: Buffer, pin: string): Buffer | undefined {
  try {
    const found = parseCertificates(pem).find((certificate) => pinOf(certificate) === pin)
    return found && Buffer.from(found.toString())
  } catch {
    return undefined
  }
}
