/** Each sentence of a status is brought about with real processes somewhere: this finds those that are not. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const told = [
  'control/status/status.ts',
  'control/status/drain.ts',
  'naming/checks/naming.ts',
  'naming/checks/dns-reasons.ts',
  'naming/checks/certificate-reasons.ts',
]
const suites = ['names', 'e2e', 'recovery', 's3', 'ingest']
const wordsMin = 3
const charsMin = 9

/** Tests of functions have these. */
const exempt: readonly string[] = [
  // They are told for less than a second.
  'is not checked yet at',
  'was not looked up yet',
  'has not closed the log yet',
  'the node is back, and delivers what it still has',
  'that node delivers what has copies',
  // Six lost nodes are too many.
  'another machine adopted its log',
  'another node took over its copies',
  'more losses are not confirmed',
  '1 more loss is not confirmed',
  // Control looks in the buckets for a minute and more first.
  'only on the disk',
  ', or confirm the loss',
  '; control tries again',
  // Nobody leads for two minutes.
  'was last checked at',
  // Twenty nodes are too many.
  'more nodes hold the deletion',
  '1 more node holds the deletion',
  // Both are parts of other sentences.
  'it registered at',
  ', and last reported',
  // The operator's way out of segments that cannot be delivered, which other tests bring about.
  'on the node, `inlet segments list` shows parked ones: `inlet segments retry`, or `export` and `discard`',
  'on the node, `inlet segments list` shows quarantined ones: `inlet segments export` and `discard`',
]

test('every sentence of a status has a test with real processes', () => {
  const tested = suites
    .flatMap((suite) => globSync(`test/${suite}/*.test.ts`, { cwd: root }))
    .filter((path) => !path.endsWith('reasons.test.ts') || path.endsWith('status-reasons.test.ts'))
    .flatMap((path) => literalsOf(path).flat())
    .filter((text) => text.length >= charsMin)
  const sentences = told
    .flatMap((path) => literalsOf(join('src', path)))
    .filter((parts) => parts.join(' ').trim().split(/\s+/).length >= wordsMin)
    .map((parts) => parts.filter((part) => part.length >= charsMin))
  expect(sentences.length).toBeGreaterThan(30)
  const isTested = (part: string) => tested.some((text) => part.includes(text) || text.includes(part))
  const untested = sentences.filter((parts) => !parts.some(isTested)).map(([first]) => first)
  expect(untested.toSorted()).toEqual(exempt.toSorted())
})

/** Returns the texts in a file, each as its fixed parts: those of a template lie between its values. */
function literalsOf(path: string): readonly (readonly string[])[] {
  const source = readFileSync(join(root, path), 'utf8').replaceAll(/^import .*|\/\*\*[\s\S]*?\*\/|\/\/ .*/gm, '')
  const literals = source.match(/'[^'\n]*'|`(?:[^`$]|\$\{[^}]*\}|\$)*`/g) ?? []
  return literals.map((literal) =>
    literal
      .slice(1, -1)
      .split(/\$\{[^}]*\}/)
      .map((part) => part.trim()),
  )
}
