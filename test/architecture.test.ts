/**
 * The import table. A folder may import only what stands beside it here; a third party only where it is fenced in.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findCircles, type Graph } from './support/circles.ts'

const root = resolve(import.meta.dirname, '..')
const source = join(root, 'src')

const mayImport: Record<string, readonly string[]> = {
  lib: [],
  config: ['model', 'lib'],
  client: ['lib'],
  model: ['lib'],
  pages: ['lib'],
  auth: ['model', 'lib'],
  objects: ['model', 'lib'],
  store: ['model', 'lib'],
  duckdb: ['model', 'lib'],
  views: ['duckdb', 'model', 'lib'],
  records: ['views', 'duckdb', 'model', 'lib'],
  preview: ['records', 'views', 'duckdb', 'model', 'lib'],
  query: ['duckdb', 'model', 'lib'],
  log: ['lib'],
  copies: ['objects', 'log', 'model', 'lib'],
  node: ['auth', 'model', 'lib'],
  ingest: ['auth', 'copies', 'node', 'pages', 'log', 'model', 'lib'],
  delivery: ['node', 'objects', 'records', 'views', 'log', 'model', 'lib'],
  naming: ['store', 'model', 'lib'],
  control: ['auth', 'naming', 'objects', 'pages', 'preview', 'query', 'store', 'model', 'lib'],
  cli: [
    'auth',
    'client',
    'control',
    'copies',
    'delivery',
    'duckdb',
    'ingest',
    'node',
    'objects',
    'preview',
    'query',
    'store',
    'log',
    'model',
    'lib',
  ],
}

/** Files of `src` itself, and the folders that may import them. */
const rootFiles: Record<string, (importer: string) => boolean> = {
  'errors.ts': (importer) => !importer.startsWith('lib/') && !importer.startsWith('log/'),
  'error-texts.ts': (importer) => importer.startsWith('pages/'),
  'main.ts': () => false,
}

/** A third party and the only places that may import it. */
const fences: readonly { readonly party: RegExp; readonly places: readonly RegExp[] }[] = [
  { party: /^@duckdb\//, places: [/^duckdb\//] },
  { party: /^@aws-sdk\//, places: [/^objects\//, /^naming\/dns\/route53\.ts$/] },
  { party: /^dns-packet$/, places: [/^naming\/dns\//] },
  {
    party: /^(kysely|pg|node:sqlite)$/,
    places: [/^store\//, /^lib\/exclusive\.ts$/, /^delivery\/windows\/key-(index|lookup)\.ts$/],
  },
  { party: /^mqtt-packet$/, places: [/^ingest\/mqtt\//, /^cli\/demo\//] },
  { party: /^@bufbuild\/protobuf(\/|$)/, places: [/^ingest\/http\/otlp\//] },
  { party: /^yaml$/, places: [/^cli\/(resources|setup|view-tests)\/yaml\.ts$/, /^lib\/yaml-text\.ts$/] },
  { party: /^diff$/, places: [/^cli\/setup\/line-diff\.ts$/] },
  { party: /^jose$/, places: [/^auth\//] },
  { party: /^@?better-auth(\/|$)/, places: [/^auth\/sign-in-(library|provider)\.ts$/] },
  { party: /^(fastify|@fastify\/.*|fastify-type-provider-zod)$/, places: [/^control\/http\//] },
  { party: /^@node-rs\/crc32$/, places: [/^log\/local\//] },
  { party: /^(@peculiar\/x509|reflect-metadata|acme-client)$/, places: [/^naming\/certificates\//] },
  { party: /^@stricli\//, places: [/^cli\//] },
]

type Import = { readonly importer: string; readonly specifier: string }

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const imports: readonly Import[] = files.flatMap((importer) => {
  const text = readFileSync(join(source, importer), 'utf8')
  return [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)['"]([^'"]+)['"]/gm)].map(([, specifier = '']) => ({
    importer,
    specifier,
  }))
})

const folderOf = (path: string): string => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')

/** The file in `src` that a specifier names, or undefined for a third party. */
function target({ importer, specifier }: Import): string | undefined {
  // Support files of tests lie outside of src.
  if (importer.endsWith('.test.ts') && specifier.includes('../test/support/')) return undefined
  if (specifier.startsWith('#')) return specifier.slice(1)
  if (specifier.startsWith('.')) return relative(source, resolve(source, dirname(importer), specifier))
  return undefined
}

/** Returns what a process has loaded once it runs these files: files of `src`, and third parties. Dynamic imports do not count. */
function loadedBy(...entries: readonly string[]): {
  readonly files: ReadonlySet<string>
  readonly thirdParties: readonly string[]
} {
  const loaded = new Set<string>()
  const thirdParties = new Set<string>()
  const load = (file: string) => {
    if (loaded.has(file)) return
    loaded.add(file)
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\s+(?!type\b)(?:[^'"]*\sfrom\s+)?['"]([^'"]+)['"]/gm)) {
      const path = target({ importer: file, specifier })
      if (path !== undefined) load(path)
      else if (!specifier.startsWith('node:')) thirdParties.add(specifier)
    }
  }
  for (const entry of entries) load(entry)
  return { files: loaded, thirdParties: [...thirdParties].toSorted() }
}

/** Returns which files of `src` import which, type-only imports included; the files are named, or grouped, by `nameOf`. */
function importGraph(nameOf: (path: string) => string): Graph {
  const graph = new Map<string, Set<string>>()
  for (const entry of imports) {
    const path = target(entry)
    if (path === undefined) continue
    const [from, to] = [nameOf(entry.importer), nameOf(path)]
    // A group may import itself, a file may not.
    if (from === to && entry.importer !== path) continue
    graph.set(from, (graph.get(from) ?? new Set()).add(to))
  }
  return graph
}

function violations(rule: (entry: Import, target: string | undefined) => string | undefined): readonly string[] {
  return imports.flatMap((entry) => {
    const problem = rule(entry, target(entry))
    return problem === undefined ? [] : [`${entry.importer} imports ${entry.specifier}: ${problem}`]
  })
}

describe('the import table', () => {
  test('reads the sources', () => {
    expect(imports.length).toBeGreaterThan(20)
  })

  test('every folder is in the table', () => {
    expect([...new Set(files.map(folderOf))].filter((folder) => folder !== '' && !(folder in mayImport))).toEqual([])
  })

  test('folders import only what the table allows', () => {
    expect(
      violations(({ importer }, path) => {
        const from = folderOf(importer)
        if (path === undefined || from === '') return undefined
        const to = folderOf(path)
        if (to === from || (to !== '' && mayImport[from]?.includes(to))) return undefined
        if (to === '' && rootFiles[path]?.(importer) === true) return undefined
        // Compositions see the configuration.
        if (to === 'config' && (importer.endsWith('/app.ts') || from === 'cli')) return undefined
        // The next test says who may import an app.
        if (path.endsWith('/app.ts')) return undefined
        return `${from} may import ${mayImport[from]?.join(', ') || 'nothing'}`
      }),
    ).toEqual([])
  })

  test('no file imports itself by way of others', () => {
    expect(findCircles(importGraph((path) => path))).toEqual([])
  })

  test('no folder imports itself by way of others', () => {
    const room = (path: string) => folderOf(path) || path
    expect(findCircles(importGraph(room))).toEqual([])
  })

  test('no folder within a folder imports itself by way of its siblings, or of the files beside it', () => {
    const parents = new Set(files.map((name) => dirname(name)).filter((name) => name !== '.'))
    for (const parent of parents) {
      const isWithin = (path: string) => path.startsWith(`${parent}/`)
      // The files of a folder are one room beside its folders, without those that compose. Generated files count as its own.
      const room = (path: string) => {
        const [child = '', rest] = path.slice(parent.length + 1).split('/', 2)
        return rest === undefined || child === 'generated' ? parent : `${parent}/${child}`
      }
      const graph = new Map<string, Set<string>>()
      for (const entry of imports.filter(
        ({ importer }) => isWithin(importer) && !/(^|\/)(app|plane)\.ts$|\.test\.ts$/.test(importer),
      )) {
        const path = target(entry)
        if (path === undefined || !isWithin(path)) continue
        const [from, to] = [room(entry.importer), room(path)]
        if (from !== to) graph.set(from, (graph.get(from) ?? new Set()).add(to))
      }
      expect(findCircles(graph), parent).toEqual([])
    }
  })

  test('only the commands that serve import the app files, and nothing imports main', () => {
    expect(
      violations(({ importer }, path) =>
        path !== undefined &&
        (path === 'main.ts' || path.endsWith('/app.ts')) &&
        importer !== 'cli/serve/processes.ts' &&
        !importer.endsWith('.test.ts')
          ? 'it is a composition root'
          : undefined,
      ),
    ).toEqual([])
  })

  test('a plane is composed from ports: only its app and tests import it, and it reaches nothing outside by itself', () => {
    const planes = ['control/plane.ts', 'delivery/plane.ts', 'ingest/plane.ts']
    expect(files.filter((name) => name.endsWith('/plane.ts')).toSorted()).toEqual(planes)
    expect(
      violations(({ importer }, path) =>
        path?.endsWith('/plane.ts') === true && importer !== path.replace('plane.ts', 'app.ts') && !importer.endsWith('.test.ts')
          ? 'an app composes it'
          : undefined,
      ),
    ).toEqual([])
    const importsOutside = /^import (?!type\b).*('node:|systemFiles|systemClock|#config)/m
    expect(planes.filter((name) => importsOutside.test(readFileSync(join(source, name), 'utf8')))).toEqual([])
  })

  test('only log/ knows the names and paths of segment files', () => {
    const entrances = [
      'frame',
      'local/backup',
      'local/log-writer',
      'local/piece-writer',
      'local/read/segment-scan',
      'local/segment-source',
      'log-error',
      'log-writer',
      'memory/log-writer',
      'memory/segment-source',
      'memory/storage',
      'records',
      'seal-observer',
      'segment-error',
      'segment-piece',
      'segment-source',
    ].map((name) => `log/${name}.ts`)
    expect(
      violations(({ importer }, path) =>
        path?.startsWith('log/') === true && !importer.startsWith('log/') && !entrances.includes(path)
          ? 'use log/segment-source.ts'
          : undefined,
      ),
    ).toEqual([])
  })

  test('lib knows no account and no endpoint', () => {
    const written = files.filter((name) => name.startsWith('lib/') && !name.endsWith('.test.ts'))
    expect(written.filter((name) => /account|endpoint/i.test(readFileSync(join(source, name), 'utf8')))).toEqual([])
  })

  test('the command line loads no command before it runs', () => {
    const { files, thirdParties } = loadedBy('cli/main.ts')
    expect(files).toContain('cli/commands/keys.ts')
    expect(files).not.toContain('cli/operator/keys.ts')
    expect(thirdParties).toEqual(['@stricli/core'])
  })

  test('the client runs in browsers, and needs no other package', () => {
    const { files, thirdParties } = loadedBy('client/index.ts')
    expect(files).toContain('client/client.ts')
    expect(thirdParties).toEqual([])
    const texts = [...files].map((name) => readFileSync(join(source, name), 'utf8'))
    expect(texts.filter((text) => /['"]node:|\bBuffer\b|\bprocess\./.test(text))).toEqual([])
  })

  test('routes never import the store', () => {
    expect(
      violations(({ importer }, path) =>
        importer.startsWith('control/http/routes/') && path?.startsWith('store/') ? 'a service owns that' : undefined,
      ),
    ).toEqual([])
  })

  test('third parties stay behind their fence', () => {
    expect(
      violations(({ importer, specifier }) => {
        const fence = fences.find(({ party }) => party.test(specifier))
        return fence === undefined || fence.places.some((place) => place.test(importer)) ? undefined : 'it is fenced in elsewhere'
      }),
    ).toEqual([])
  })

  test('a folder is named from outside as #folder/file.ts, a sibling as ./file.ts', () => {
    expect(
      violations(({ importer, specifier }, path) => {
        if (path === undefined) return undefined
        if (!path.endsWith('.ts')) return 'names no file'
        const same = folderOf(importer) === folderOf(path)
        if (specifier.startsWith('.') && !same && folderOf(importer) !== '') return 'write it with #'
        return specifier.startsWith('#') && same && dirname(importer) === dirname(path) ? 'write it with ./' : undefined
      }),
    ).toEqual([])
  })

  test('only lib/http.ts imports values of node:http', () => {
    const importsValues = /^import (?!type\b).*'node:http'/m
    const offenders = files.filter(
      (name) => !name.endsWith('.test.ts') && importsValues.test(readFileSync(join(source, name), 'utf8')),
    )
    expect(offenders).toEqual([])
  })

  test('the data plane reaches the machine only through its ports', () => {
    const rooms = /^(delivery|ingest|log|node|objects|records)\//
    const outside: Readonly<Record<string, RegExp>> = {
      files: /from 'node:fs(\/promises)?'|\bsystemFiles\b/,
      time: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.|(?<!\.)\bset(Timeout|Interval|Immediate)\(|AbortSignal\.timeout|\bsystemClock\b/,
      randomness: /Math\.random|\brandom(UUID|Bytes|Int)\b|\bsystemRandom\b/,
      machine: /import (?!type\b|\{ isIP).*'node:(child_process|worker_threads|net|tls|dgram|dns)'|import \{ system\b/,
    }
    /** Ports, and what runs only behind one: all that a simulation replaces. */
    const ports: readonly { readonly place: RegExp; readonly uses: readonly (keyof typeof outside)[] }[] = [
      { place: /\/app\.ts$/, uses: ['machine'] },
      // Sockets, children of the supervisor, and the thread that converts export requests.
      { place: /^ingest\/(http\/read-turns|mqtt\/server)\.ts$/, uses: ['time', 'machine'] },
      { place: /^node\/supervisor\.ts$/, uses: ['machine'] },
      { place: /^ingest\/http\/otlp\/(conversion|worker)-thread\.ts$/, uses: ['machine'] },
      // The client of S3 streams files to and from sockets.
      { place: /^objects\/s3(-store|-multipart)\.ts$/, uses: ['files', 'time'] },
      // Conversion processes, behind ConversionPool: they share files with DuckDB.
      { place: /^delivery\/convert\/(build|worker)\//, uses: ['files', 'time'] },
      { place: /^records\/(key-hashes|lay-out|piece-files|place-records|record-runs)\.ts$/, uses: ['files'] },
      // The thread that changes indexes of keys, behind KeyIndexes.
      { place: /^delivery\/windows\/(index-thread|key-index|thread)\.ts$/, uses: ['files', 'machine'] },
      // Permissions for the other user whom such processes may run as.
      { place: /^delivery\/convert\/worker-access\.ts$/, uses: ['files'] },
    ]
    const found = files
      .filter((name) => rooms.test(name) && !name.endsWith('.test.ts'))
      .flatMap((name) => {
        const text = readFileSync(join(source, name), 'utf8')
        const allowed = ports.filter(({ place }) => place.test(name)).flatMap(({ uses }) => uses)
        return Object.keys(outside).flatMap((kind) =>
          outside[kind]?.test(text) === true && !allowed.includes(kind) ? [`${name}: ${kind}`] : [],
        )
      })
    expect(found).toEqual([])
  })

  test('only config/config.ts reads the environment', () => {
    expect(
      files.filter((name) => name !== 'config/config.ts' && readFileSync(join(source, name), 'utf8').includes('process.env')),
    ).toEqual([])
  })

  test('no file is longer than 500 lines', () => {
    const written = files.filter((name) => !name.startsWith('client/generated/'))
    expect(written.filter((name) => readFileSync(join(source, name), 'utf8').split('\n').length > 501)).toEqual([])
  })
})

describe('comments', () => {
  const openers = '(?:Of|What|Who|Those|Which|That|Whoever|Whatever)\\b'
  const block = `/[*]{1,2}(?:[ \\t]*\\n[ \\t]*[*])?[ \\t]+${openers}`
  const line = `(?<!^[ \\t]*//.*\\n[ \\t]*)(?<=^|\\s)//[ \\t]+${openers}`
  const vague = new RegExp(`${block}|${line}`, 'gm')
  const findVague = (text: string): readonly number[] =>
    [...text.matchAll(vague)].map(({ index }) => text.slice(0, index).split('\n').length)

  test('open with their subject or verb', () => {
    const vagueComments = ['src', 'console/src', 'test'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        // This file has comments of both kinds in the next test.
        .filter((name) => /\.tsx?$/.test(name) && !/\bgenerated\b|^architecture\b/.test(name))
        .flatMap((name) => findVague(readFileSync(join(root, folder, name), 'utf8')).map((at) => `${folder}/${name}:${at}`)),
    )
    expect(vagueComments).toEqual([])
  })

  test('are checked by their first line only', () => {
    const first = [
      '/** Of it. */',
      '/* What. */',
      '/**\n * Who is it.\n */',
      '// That is it.',
      'const a = 1 // Those.',
      '{/* Which. */}',
    ]
    expect(first.filter((text) => findVague(text).length !== 1)).toEqual([])
    const others = ['/** Office. */', '// It is one\n// That continues.', '/**\n * It.\n * What it is.\n */', "'http://What'"]
    expect(others.filter((text) => findVague(text).length !== 0)).toEqual([])
  })
})

/** An idle process needs more memory with each package. Import a large library on demand if most installations do not need it. */
describe('the third parties that an idle process loads', () => {
  const everyProcess = ['cli/main.ts', 'config/config.ts', 'cli/serve/processes.ts', 'cli/serve/run-app.ts']
  const common = ['@stricli/core', 'pino']

  test.each([
    { process: 'the supervisor', app: 'cli/serve/supervise.ts', parties: [] },
    { process: 'delivery', app: 'delivery/app.ts', parties: ['@node-rs/crc32', 'zod'] },
    {
      process: 'ingest',
      app: 'ingest/app.ts',
      parties: ['@bufbuild/protobuf/wire', '@node-rs/crc32', 'jose', 'lru-cache', 'mqtt-packet', 'prom-client', 'zod'],
    },
    {
      process: 'control on SQLite',
      app: 'control/app.ts',
      parties: [
        '@fastify/accepts',
        '@fastify/helmet',
        '@fastify/rate-limit',
        '@fastify/static',
        '@fastify/swagger',
        '@fastify/swagger-ui',
        'content-disposition',
        'fastify',
        'fastify-type-provider-zod',
        'jose',
        'kysely',
        'lru-cache',
        'prom-client',
        'zod',
      ],
    },
  ])('$process', ({ app, parties }) => {
    expect(loadedBy(...everyProcess, app).thirdParties).toEqual([...common, ...parties].toSorted())
  })

  test('delivery leaves DuckDB to processes that it can kill', () => {
    expect(loadedBy('delivery/convert/worker/convert-worker.ts').files).toContain('duckdb/database.ts')
    expect(loadedBy('delivery/app.ts').files).not.toContain('duckdb/database.ts')
  })

  test('control loads nothing that parses or compiles definitions: they would hold its event loop', () => {
    const loaded = [...loadedBy(...everyProcess, 'control/app.ts').files]
    expect(loaded).toContain('preview/preview-workers.ts')
    expect(loaded.filter((file) => /^(views|records|duckdb)\//.test(file))).toEqual([])
  })
})

describe('the search for circles', () => {
  const graphOf = (edges: Readonly<Record<string, readonly string[]>>): Graph =>
    new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)]))

  test('finds none in a graph whose ways only part and meet', () => {
    expect(findCircles(graphOf({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }))).toEqual([])
  })

  test('shows each circle with the nodes on it', () => {
    const graph = graphOf({ a: ['b'], b: ['c', 'd'], c: ['b'], d: ['e'], e: ['f'], f: ['d'], g: ['g'] })
    expect(findCircles(graph)).toEqual(['b → c → b', 'd → e → f → d', 'g → g'])
  })
})

describe('black-box tests', () => {
  test('test/e2e, test/recovery, test/package and what they import of test/support import nothing of the program', () => {
    const folders = ['e2e', 'recovery', 'package'].map((name) => join(root, 'test', name))
    const queue = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    const seen = new Set(queue)
    const offenders: string[] = []
    for (const path of queue) {
      const text = readFileSync(path, 'utf8')
      for (const [, specifier = ''] of text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)['"]([#.][^'"]+)['"]/gm)) {
        const file = specifier.startsWith('#') ? join(source, specifier.slice(1)) : resolve(dirname(path), specifier)
        if (file.startsWith(source)) offenders.push(`${relative(root, path)} imports ${specifier}`)
        else if (!seen.has(file)) queue.push(file)
        seen.add(file)
      }
    }
    expect(queue.length).toBeGreaterThan(15)
    expect(offenders).toEqual([])
  })
})

describe('package-lock.json', () => {
  type Entry = { readonly integrity?: string; readonly optional?: boolean; readonly os?: readonly string[] }
  const lock: { packages: Record<string, Entry> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const unpinned = Object.entries(lock.packages).filter(([name, { integrity }]) => name !== '' && integrity === undefined)

  test('pins the content of every package, except binaries that the registry of the author did not have', () => {
    // npm run lock pins them with the whole registry. The container and CI use Linux on x64 with glibc.
    const unknown = unpinned.filter(([name, { optional }]) => optional !== true || /linux-x64(-gnu)?$/.test(name))
    expect(unknown.map(([name]) => name)).toEqual([])
  })
})
