/**
 * Finds keys and tokens in what the test suite prints: output of the processes that tests start, log lines, and the output of tests themselves.
 *
 * Owns: what counts as a secret, and the texts that were collected. Law: a finding never has the secret itself.
 */
import { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Secrets that are recognised by their form. */
const forms: readonly (readonly [string, RegExp])[] = [
  ['an API key', /ing_live_[0-9A-Za-z]{32}/],
  ['a join token', /ing_join_[0-9A-Za-z]{32}/],
  ['a JWT', /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/],
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ['a signed link', /[?&](?:X-Amz-Signature|signature)=[0-9a-f]{64}/],
]
/** Variables whose values are secret wherever they are printed. */
const secretName = /^(?!.*_FILE$)(?!AWS_ACCESS_KEY_ID$)(INLET|AWS|PG)\w*(KEY|TOKEN|SECRET|PASSWORD)/
/** Secrets that Inlet creates in its data directory. */
const secretFiles = [
  'node-token',
  'operator-token',
  'secret-key',
  'first-api-key',
  'sign-in-link',
  'node/credential',
  'node/marker-key',
]
/** Commands that create a key or a token for the person who runs them. */
const printsKeys = /\b(keys|accounts|join-tokens) create\b/
const secretCharsMin = 8
const textCharsMax = 8 * 1024 * 1024

type Watched = { readonly name: string; readonly secrets: ReadonlyMap<string, string>; text: string }

const watched = new Set<Watched>()

/** Returns what kinds of secrets a text has. `known` maps more secrets to their names. */
export function secretsIn(text: string, known: ReadonlyMap<string, string> = new Map()): readonly string[] {
  const byForm = forms.filter(([, form]) => form.test(text)).map(([name]) => name)
  const byValue = [...known].filter(([value]) => value.length >= secretCharsMin && text.includes(value)).map(([, name]) => name)
  return [...new Set([...byForm, ...byValue])]
}

/** Returns a function that collects text, for the log of a program that runs inside the test process. */
export function watchText(name: string, secrets: ReadonlyMap<string, string> = new Map()): (text: string) => void {
  const output: Watched = { name, secrets, text: '' }
  watched.add(output)
  return (text) => {
    if (output.text.length < textCharsMax) output.text += text
    watched.add(output)
  }
}

/** Collects what the child processes of this process print from now on. The reader of their output notices nothing. */
export function watchChildren(): void {
  const prototype = ChildProcess.prototype as unknown as {
    spawn(options: { readonly envPairs?: readonly string[]; readonly args?: readonly string[] }): number
    isWatched?: boolean
  }
  if (prototype.isWatched === true) return
  prototype.isWatched = true
  const { spawn } = prototype
  prototype.spawn = function (this: ChildProcess, options) {
    const result = spawn.call(this, options)
    const command = (options.args ?? []).join(' ')
    if (!printsKeys.test(command)) watchChild(this, command, environmentOf(options.envPairs ?? []))
    return result
  }
}

/** Returns a sentence for each text with a secret, and forgets all texts. */
export function takeLeaks(): readonly string[] {
  const leaks = [...watched].flatMap(({ name, text, secrets }) => {
    const found = secretsIn(text, secrets)
    return found.length === 0 ? [] : [`${name} printed ${found.join(', ')}`]
  })
  watched.clear()
  return leaks
}

/** Throws if a text has a secret. */
export function failIfLeaked(): void {
  const leaks = takeLeaks()
  if (leaks.length > 0) throw new Error(`secrets in the output:\n${leaks.join('\n')}`)
}

function watchChild(child: ChildProcess, command: string, environment: Readonly<Record<string, string>>): void {
  const secrets = new Map(Object.entries(environment).flatMap(([name, value]) => (secretName.test(name) ? [[value, name]] : [])))
  const collect = watchText(`\`${command.slice(0, 200)}\``, secrets)
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null || stream === undefined) continue
    // A listener for 'data' would take the bytes from a reader that comes later.
    const push = stream.push.bind(stream)
    stream.push = (chunk, encoding) => {
      if (chunk !== null) collect(String(chunk))
      return push(chunk, encoding)
    }
  }
  const { INLET_DATA_DIR: data } = environment
  if (data !== undefined) child.once('exit', () => addSecretFiles(data, secrets))
}

function addSecretFiles(data: string, secrets: Map<string, string>): void {
  for (const name of secretFiles) {
    try {
      secrets.set(readFileSync(join(data, name), 'utf8').trim(), name)
    } catch {
      // Not every process creates every file.
    }
  }
}

function environmentOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}
