/** Pages of the documentation: links lead somewhere, indexes are complete, and prose is short. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { longLines, longSentences } from './support/prose.ts'

const root = resolve(import.meta.dirname, '..')
const withoutCode = (text: string) => text.replaceAll(/^( *)```.*?^ *```$/gms, '').replaceAll(/`[^`\n]*`/g, '')

/** The anchors that GitHub makes of headings. A heading that comes again gets a number. */
function anchorsOf(path: string): ReadonlySet<string> {
  const text = readFileSync(path, 'utf8').replaceAll(/^( *)```.*?^ *```$/gms, '')
  const anchors = new Set<string>()
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.*)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = words
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .trim()
      .replaceAll(' ', '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

function* brokenLinks(page: string): Generator<string> {
  for (const [, link = ''] of withoutCode(readFileSync(page, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^\w+:/.test(link)) continue
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : join(dirname(page), path)
    const isThere = existsSync(target) && (anchor === undefined || !target.endsWith('.md') || anchorsOf(target).has(anchor))
    if (!isThere) yield `${relative(root, page)}: ${link}`
  }
}

const filesOf = (...patterns: readonly string[]) =>
  execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('links lead somewhere', () => {
  const pages = filesOf('*.md')
  expect(pages).toContain('docs/tutorial.md')
  expect(pages.map((page) => join(root, page)).flatMap((page) => [...brokenLinks(page)])).toEqual([])
})

test('a file or folder that a comment, or a page for contributors, names is there', () => {
  const files = filesOf()
  const folders = new Set(files.flatMap((path) => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))))
  const isFile = (name: string) => files.some((path) => path === name || path.endsWith(`/${name.replace(/^[./]+/, '')}`))
  const isFolder = (name: string) => folders.has(name)
  const inComments = filesOf('*.ts', '*.tsx').flatMap((path) =>
    [...read(path).matchAll(/^ *(?:\/\*\*|\*|\/\/).*$/gm)].flatMap(([comment]) =>
      [...comment.matchAll(/(?<![\w.$/<])[\w./-]+\.tsx?\b/g)].map(([name]) => ({ path, name, isThere: isFile(name) })),
    ),
  )
  const inPages = filesOf('CONTRIBUTING.md', 'docs/architecture.md', 'docs/laws.md', 'docs/contributing/*.md').flatMap((path) =>
    [...read(path).matchAll(/`((?:src|test|tools|bench|docs|console)\/[^`\s*{]*)`/g)].map(([, name = '']) => {
      // A recipe names the file that its reader adds: its folder is there.
      const folder = /^(.*)\/[^/]*(?:<|NNNN)/.exec(name)?.[1]?.replace(/\/<.*/, '') ?? name.replace(/\/$/, '')
      return { path, name, isThere: isFile(name) || isFolder(folder) }
    }),
  )
  expect(inComments.length).toBeGreaterThan(100)
  expect(inPages.length).toBeGreaterThan(50)
  expect([...inComments, ...inPages].filter(({ isThere }) => !isThere)).toEqual([])
})

/** Tests that a text names: as a link with the whole title, or as a link after a part of the title. */
function* namedTests(text: string): Generator<{ readonly file: string; readonly title: string; readonly isWhole: boolean }> {
  for (const [, title = '', file = ''] of text.matchAll(/\[([^\]]+)\]\(([^)\s]+\.test\.ts)\)/g))
    if (!file.endsWith(title)) yield { file, title, isWhole: true }
  for (const [, title = '', file = ''] of text.matchAll(/"([^"]+)" in\s+\[[^\]]+\]\(([^)\s]+\.ts)\)/g))
    yield { file, title, isWhole: false }
}

test('a test that a page names is in its file', () => {
  const named = filesOf('docs/*.md').flatMap((page) =>
    [...namedTests(read(page))].map(({ file, title, isWhole }) => {
      const path = join(root, dirname(page), file)
      const source = existsSync(path) ? readFileSync(path, 'utf8') : ''
      const texts = isWhole ? [`'${title}'`, `"${title}"`, `\`${title}\``] : [title]
      return { page, file, title, isThere: texts.some((text) => source.includes(text)) }
    }),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ isThere }) => !isThere)).toEqual([])
})

test.each(['docs/fencing.md', 'docs/acknowledgements.md'])('each row of the table with tests in %s names one', (page) => {
  const [, table = ''] = /^\| .*\| tests \|\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(read(page)) ?? []
  const rows = table.trim().split('\n')
  expect(rows.length).toBeGreaterThan(5)
  const lastCell = (row: string) => row.split(' | ').at(-1) ?? ''
  expect(rows.filter((row) => [...namedTests(lastCell(row))].length === 0)).toEqual([])
})

test('parts of .ci/thorough cover files that are there', () => {
  const listed = execFileSync(join(root, '.ci/thorough'), ['--list'], { encoding: 'utf8' })
  expect(listed).toMatch(/^(\w[\w-]*: (passed|to run)\n)+$/)
})

test('the index has every decision', () => {
  const index = read('docs/decisions/README.md')
  const records = readdirSync(join(root, 'docs/decisions')).filter((name) => name !== 'README.md')
  expect(records.filter((name) => !index.includes(`](${name}) |`))).toEqual([])
})

test('a law that is cited by number is in docs/laws.md', () => {
  const laws = new Set([...read('docs/laws.md').matchAll(/^## (\d+)\. /gm)].map(([, number]) => number))
  const cited = filesOf('src/*.ts', 'docs/*.md', 'CONTRIBUTING.md').flatMap((path) =>
    [...read(path).matchAll(/\blaws? (\d+(?:(?:, | and )\d+)*)/gi)].map(([, numbers = '']) => ({ path, numbers })),
  )
  expect(cited.length).toBeGreaterThan(0)
  expect(cited.filter(({ numbers }) => !numbers.split(/\D+/).every((number) => laws.has(number)))).toEqual([])
})

test('sentences have at most 25 words, lines at most 120 characters', () => {
  const generated = ['docs/cli.md', 'docs/benchmarks.md']
  const places = filesOf('README.md', 'CONTRIBUTING.md', 'console/README.md', 'docs/*.md')
    .filter((page) => !generated.includes(page))
    .flatMap((page) => {
      const text = read(page)
      return [
        ...longSentences(text).map(({ line, words }) => `${page}:${line}: a sentence of ${words} words`),
        ...longLines(text).map((line) => `${page}:${line}: a long line`),
      ]
    })
  expect(places).toEqual([])
})
