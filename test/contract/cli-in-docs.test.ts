/** Commands of `inlet` that the documentation, the deployment files and messages of the console show: each exists, with its options. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command, RouteMap } from '@stricli/core'
import { expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import type { CliContext } from '#cli/terminal/context.ts'

const root = resolve(import.meta.dirname, '../..')
const pages = execFileSync('git', ['ls-files', 'README.md', 'CONTRIBUTING.md', 'docs', 'deploy', 'examples', 'console/src'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  // Decisions are as they were when they were taken.
  .filter((name) => /\.(md|ya?ml|tsx?|service)$/.test(name) && !name.startsWith('docs/decisions/'))

type Target = Command<CliContext> | RouteMap<CliContext>
type Parameters = { readonly flags?: Readonly<Record<string, unknown>>; readonly aliases?: Readonly<Record<string, unknown>> }

/** Global options, and those that every command has. */
const everywhere = ['--help', '-h', '--version', '--profile']

/** Returns what is wrong with a command line, or nothing. */
function problemOf(line: string): string | undefined {
  const words = line.split(/\s+/).filter((word) => word !== '')
  let target: Target = commands
  while (words[0]?.startsWith('--')) words.splice(0, words[0] === '--profile' ? 2 : 1)
  while ('getAllEntries' in target) {
    const word = words.shift()
    if (word === undefined || !/^[a-z]/.test(word)) return undefined
    if (word === 'help') return undefined
    const entry = target.getAllEntries().find(({ name }) => name.original === word || name['convert-camel-to-kebab'] === word)
    if (entry === undefined) return target === commands ? `no command ${word}` : undefined
    target = entry.target as Target
  }
  const { flags = {}, aliases = {} } = target.parameters as Parameters
  const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const known = new Set([
    ...everywhere,
    ...Object.keys(flags).map((name) => `--${kebab(name)}`),
    ...Object.keys(aliases).map((name) => `-${name}`),
  ])
  const unknown = words
    .map((word) => word.replace(/=.*|[,.;:)\]`'"]+$/g, ''))
    .find((word) => /^--?[a-z]/.test(word) && !known.has(word))
  return unknown === undefined ? undefined : `no option ${unknown}`
}

/** Command lines in code: up to a pipe, a redirection, a comment, or the end of the code. */
const shown = /(?:^|[`($"'>|] ?|; )(?:npm run (?:--silent )?inlet -- |node src\/main\.ts |inlet )((?:[a-z]|--)[^\n`|<>#;&)']*)/gm

/** A message of the log looks like one. */
const isCommand = ({ line }: { readonly line: string }) => line !== 'running'

test('commands that pages show exist, with their options', () => {
  const lines = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(shown)].map(([, line = '']) => ({ page, line })).filter(isCommand),
  )
  const problems = lines.flatMap(({ page, line }) => {
    const problem = problemOf(line)
    return problem === undefined ? [] : [`${page}: inlet ${line}: ${problem}`]
  })
  expect(problems).toEqual([])
  expect(lines.length).toBeGreaterThan(200)
})

test('what does not exist is found', () => {
  expect(problemOf('accounts create --name acme')).toBeUndefined()
  expect(problemOf('keys list --json')).toBeUndefined()
  expect(problemOf('accounts create --nam acme')).toBe('no option --nam')
  expect(problemOf('acounts create')).toBe('no command acounts')
})
