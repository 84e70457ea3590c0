/** The memory of processes, from `/proc` and from V8 itself. Linux only. */
import { readFileSync } from 'node:fs'

export type Memory = {
  readonly rss: number
  /** A page that n processes share counts as 1/n of it. */
  readonly pss: number
  /** Resident parts of the resident set: the program `node`, shared libraries and other files, stacks, and the rest. */
  readonly program: number
  readonly files: number
  readonly stacks: number
  readonly anonymous: number
}

export type Heap = {
  readonly used: number
  /** Committed and in memory. */
  readonly resident: number
  readonly young: number
  readonly buffers: number
  /** Whether Node's type stripper is loaded: source files were not in the compile cache. */
  readonly hasStripper: boolean
}

type Mapping = { readonly path: string; readonly bytes: number; readonly isGuard: boolean; rss: number; pss: number }

/** Returns the sums of `/proc/<pid>/smaps`, in bytes. */
export function memoryOf(pid: number): Memory {
  const mappings = readMappings(pid)
  const sum = (of: 'rss' | 'pss', matches: (mapping: Mapping, index: number) => boolean = () => true) =>
    mappings.reduce((total, mapping, index) => total + (matches(mapping, index) ? mapping[of] : 0), 0)
  // The system puts an inaccessible page below the stack of each thread.
  const isStack = ({ path, bytes }: Mapping, index: number) =>
    path === '[stack]' || (path === '' && bytes >= 2 ** 21 && bytes <= 2 ** 23 && mappings[index - 1]?.isGuard === true)
  const isProgram = ({ path }: Mapping) => path.endsWith('/node')
  const isFile = (mapping: Mapping) => mapping.path.startsWith('/') && !isProgram(mapping)
  const [rss, program, files, stacks] = [sum('rss'), sum('rss', isProgram), sum('rss', isFile), sum('rss', isStack)]
  return { rss, pss: sum('pss'), program, files, stacks, anonymous: rss - program - files - stacks }
}

function readMappings(pid: number): readonly Mapping[] {
  const mappings: Mapping[] = []
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'latin1').split('\n')) {
    const header = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+\s*(.*)$/.exec(line)
    const current = mappings.at(-1)
    if (header !== null) {
      const [, from = '', to = '', rights, path = ''] = header
      const bytes = Number.parseInt(to, 16) - Number.parseInt(from, 16)
      mappings.push({ path, bytes, isGuard: rights === '---p' && bytes <= 2 ** 16, rss: 0, pss: 0 })
      continue
    }
    const [, field, kilobytes] = /^(Rss|Pss):\s+(\d+) kB$/.exec(line) ?? []
    if (current === undefined || field === undefined) continue
    current[field === 'Rss' ? 'rss' : 'pss'] = Number(kilobytes) * 1024
  }
  return mappings
}

/** Returns the process and its descendants; none if it has ended. */
export function processTree(pid: number): readonly number[] {
  let list: string
  try {
    list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
  } catch {
    return []
  }
  const children = list.trim().split(' ').filter(Boolean)
  return [pid, ...children.flatMap((child) => processTree(Number(child)))]
}

/** Returns the part that a process plays, by its command line. */
export function roleOf(pid: number): string {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()
  const [, name] = /main\.[jt]s (\w+)/.exec(command) ?? []
  if (command.startsWith('npm')) return 'npm'
  if (/^(\/bin\/)?sh /.test(command)) return 'sh'
  if (command.includes('preview-worker')) return 'preview worker'
  if (command.includes('convert-worker')) return 'conversion worker'
  if (command.includes('query-worker')) return 'query worker'
  return name === 'start' ? 'supervisor' : (name ?? command)
}

/**
 * Opens the inspector of a process and asks V8. That costs the process memory, so read everything else first.
 * `nextAddress` resolves with the next address that a process prints.
 */
export async function heapOf(pid: number, nextAddress: () => Promise<string>): Promise<Heap> {
  const address = nextAddress()
  process.kill(pid, 'SIGUSR2')
  const socket = new WebSocket(await address)
  const { promise, resolve, reject } = Promise.withResolvers<Heap>()
  socket.onerror = () => reject(new Error(`the inspector of process ${pid} cannot be reached`))
  socket.onmessage = ({ data }) => resolve(JSON.parse(JSON.parse(String(data)).result.result.value))
  socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: question } }))
  try {
    return await promise
  } finally {
    socket.close()
  }
}

const question = `(() => {
  const { heapUsed: used, arrayBuffers: buffers } = process.memoryUsage()
  const spaces = process.getBuiltinModule('node:v8').getHeapSpaceStatistics()
  const resident = (name) => spaces.reduce((sum, s) => sum + (s.space_name.includes(name) ? s.physical_space_size : 0), 0)
  const hasStripper = process.moduleLoadList.some((name) => name.includes('deps/amaro'))
  return JSON.stringify({ used, buffers, resident: resident(''), young: resident('new_'), hasStripper })
})()`
