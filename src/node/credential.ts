/**
 * The credential of this node, which ingest and delivery share.
 *
 * Owns: `node/credential`: the secret in use, and below it the one before. Does not own: the registration with control (registration.ts).
 * Law: a secret is durable before control learns of it, and the one before stays in the file, because it proves that this node is the one
 * that control knows. So a node that is stopped at any point registers again without help.
 */
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { writeDurably } from '#lib/files.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { nodeSecretPattern } from '#model/patterns.ts'

export class NodeCredential {
  readonly nodeId: string
  readonly #path: string
  readonly #system: Pick<System, 'files' | 'random'>
  #secrets: readonly string[]

  private constructor(nodeId: string, path: string, system: Pick<System, 'files' | 'random'>, secrets: readonly string[]) {
    this.nodeId = nodeId
    this.#path = path
    this.#system = system
    this.#secrets = secrets
  }

  /** Reads the file. The first process to call this creates it. Throws UserError if it is damaged. */
  static async open(nodeId: string, path: string, system: Pick<System, 'files' | 'random'>): Promise<NodeCredential> {
    const text = await readOrCreate(system.files, path, () => newNodeSecret(system.random))
    return new NodeCredential(nodeId, path, system, parse(path, text))
  }

  /** Token that control verifies. */
  get token(): string {
    return printNodeCredential(this.nodeId, this.secret)
  }

  get secret(): string {
    return this.#secrets[0] ?? ''
  }

  get previousSecret(): string | null {
    return this.#secrets[1] ?? null
  }

  /** Makes another secret. The present one proves to control whose it is. */
  async replace(): Promise<void> {
    const { files, random } = this.#system
    const secrets = [newNodeSecret(random), this.secret]
    await writeDurably(files, this.#path, Buffer.from(`${secrets.join('\n')}\n`))
    this.#secrets = secrets
  }

  /** Reads the file again: the other process of the node may have replaced the secret. */
  async reload(): Promise<void> {
    const text = await readTrimmed(this.#system.files, this.#path)
    if (text !== undefined) this.#secrets = parse(this.#path, text)
  }
}

function parse(path: string, text: string): readonly string[] {
  const secrets = text.split('\n')
  if (secrets.length > 2 || !secrets.every((secret) => nodeSecretPattern.test(secret)))
    throw new UserError(
      `${path} is ${text === '' ? 'empty' : 'not the credential of a node'}: restore it; or delete it, release the id of this node (inlet nodes release), and start with a join token (INLET_JOIN_TOKEN)`,
    )
  return secrets
}
