/** `inlet secrets create` and `rotate`: the value comes from a file, never from the command line. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Schemas } from '#client/generated/schema.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { openRemote } from '../remote/remote.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { confirm } from './confirm.ts'
import { findId } from './find.ts'

export type SecretFlags = JsonFlags & { readonly file?: string; readonly base64: boolean }

type Given = { readonly value: string; readonly encoding: 'text' | 'base64' }

export async function createSecret(this: CliContext, flags: SecretFlags, name: string): Promise<void> {
  const given = await readValue(flags)
  const { client } = await openRemote(this)
  print(this, flags, await client.createSecret({ name, ...given }), 'Created')
}

export async function rotateSecret(
  this: CliContext,
  flags: SecretFlags & { readonly yes: boolean },
  secret: string,
): Promise<void> {
  const { client } = await openRemote(this)
  const id = await findId(client, 'secret', secret)
  if (!flags.yes) await confirm(this, `${secret}: the old value will be lost; without a copy nobody can make its hashes again`)
  print(this, flags, await client.rotateSecret(id, { ...(await readValue(flags)) }), 'Rotated')
}

/** Returns undefined without a file: then Inlet makes a value. */
async function readValue({ file, base64 }: SecretFlags): Promise<Given | undefined> {
  if (file === undefined) {
    if (base64) throw new UsageError('--base64: needs a file with the value')
    return undefined
  }
  const content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8').catch(cannotRead)
  if (content.includes('\uFFFD')) throw new UserError(`${file} is not text: write it as base64, and add --base64`)
  return { value: content.replace(/\r?\n$/, ''), encoding: base64 ? 'base64' : 'text' }
}

function cannotRead(error: unknown): never {
  throw new UserError(`cannot read the file: ${errorCode(error) ?? 'unknown error'}`)
}

function print(
  context: CliContext,
  { json }: SecretFlags,
  secret: Schemas['Secret'] & { readonly value?: string | undefined },
  what: string,
): void {
  const { name, value } = secret
  const use = `Views hash with it as hmac_sha256('${name}', …).`
  const made = value === undefined ? '' : `${value}\n\nSave the value now, which is base64: it is not shown again.\n`
  printResult(context, { json }, secret, `${made}${what} the secret ${name}. ${use}\n`)
}
