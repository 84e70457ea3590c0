/**
 * Prints how far a test run is: what runs now, what each project has done, failures in full as they happen, and the slowest files.
 *
 * Law: the last line is `tests: N passed, N failed, N skipped`. CI judges a run by it, so whatever fails outside of a test counts too.
 */
import { stripVTControlCharacters, styleText } from 'node:util'
import type {
  Reporter,
  SerializedError,
  TestCase,
  TestModule,
  TestProject,
  TestSpecification,
  TestSuite,
  Vitest,
} from 'vitest/node'

const statusEveryMs = { terminal: 500, log: 15_000 }
const slowFilesShown = 12
/** With this many files or fewer, each test gets a line of its own. */
const fewFiles = 3

type Progress = {
  files: number
  done: number
  passed: number
  failed: number
  skipped: number
  startedAt: number
  endedAt: number
}
type FileTime = { readonly file: string; readonly seconds: number; readonly tests: number }

export class ProgressReporter implements Reporter {
  #vitest: Vitest | undefined
  #startedAt = 0
  #fileCount = 0
  readonly #projects = new Map<string, Progress>()
  readonly #running = new Map<string, { readonly file: string; readonly at: number }>()
  readonly #times: FileTime[] = []
  /** Number of skipped tests by file and reason. */
  readonly #skipped = new Map<string, number>()
  #otherFailures = 0
  #timer: NodeJS.Timeout | undefined
  #statusIsShown = false

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#startedAt = performance.now()
    this.#fileCount = specifications.length
    this.#projects.clear()
    for (const { project } of specifications) this.#progressOf(project).files += 1
    const plan = [...this.#projects].map(([name, { files }]) => `${name} ${files}`).join(', ')
    this.#print(`${specifications.length} test files: ${plan}`)
    this.#timer = setInterval(() => this.#showStatus(), this.#isTerminal() ? statusEveryMs.terminal : statusEveryMs.log)
    this.#timer.unref()
  }

  onTestModuleQueued(module: TestModule): void {
    const progress = this.#progressOf(module.project)
    progress.startedAt ||= performance.now()
    this.#running.set(module.id, { file: nameOf(module), at: performance.now() })
  }

  onTestCaseResult(test: TestCase): void {
    const progress = this.#progressOf(test.project)
    const result = test.result()
    if (result.state === 'failed') {
      progress.failed += 1
      this.#printFailure(`${nameOf(test.module)} > ${test.fullName}`, result.errors, test.project)
    } else if (result.state === 'skipped') {
      this.#countSkipped(test.module, test.fullName, result.note)
    } else {
      progress.passed += 1
      if (this.#fileCount <= fewFiles)
        this.#print(`  ${styleText('green', '✓')} ${test.fullName} ${elapsed(test.diagnostic()?.duration ?? 0)}`)
    }
  }

  onTestSuiteResult(suite: TestSuite): void {
    this.#countOther(`${nameOf(suite.module)} > ${suite.fullName}`, suite.errors(), suite.project)
  }

  onTestModuleEnd(module: TestModule): void {
    this.#countOther(nameOf(module), module.errors(), module.project)
    for (const suite of module.children.allSuites()) if (suite.children.size === 0) this.#countSkipped(module, suite.fullName)
    const started = this.#running.get(module.id)
    this.#running.delete(module.id)
    const now = performance.now()
    const tests = [...module.children.allTests()].length
    this.#times.push({ file: nameOf(module), seconds: (now - (started?.at ?? now)) / 1000, tests })
    const progress = this.#progressOf(module.project)
    progress.done += 1
    progress.endedAt = now
    if (progress.done === progress.files) this.#print(describe(module.project.name, progress, now))
  }

  onUserConsoleLog({ content, taskId }: { readonly content: string; readonly taskId?: string }): void {
    const [file] = [...this.#running].find(([id]) => taskId?.startsWith(id) === true)?.slice(1) ?? []
    const from = typeof file === 'object' ? `${file.file}: ` : ''
    for (const line of content.trimEnd().split('\n')) this.#print(styleText('dim', `  ${from}${line}`))
  }

  onTestRunEnd(_: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    clearInterval(this.#timer)
    this.#countOther('outside of any test', unhandled, undefined)
    this.#printSlowest()
    for (const [reason, count] of this.#skipped) this.#print(styleText('yellow', `skipped ${count}: ${reason}`))
    const sum = (of: 'passed' | 'failed' | 'skipped') => [...this.#projects.values()].reduce((total, each) => total + each[of], 0)
    const wall = elapsed(performance.now() - this.#startedAt)
    this.#print(`${this.#times.length} of ${this.#fileCount} files in ${wall}`)
    this.#print(`tests: ${sum('passed')} passed, ${sum('failed') + this.#otherFailures} failed, ${sum('skipped')} skipped`)
  }

  #progressOf(project: TestProject): Progress {
    const known = this.#projects.get(project.name)
    if (known !== undefined) return known
    const fresh = { files: 0, done: 0, passed: 0, failed: 0, skipped: 0, startedAt: 0, endedAt: 0 }
    this.#projects.set(project.name, fresh)
    return fresh
  }

  /** The reason is the note of the test, or stands in its name or in the name of its suite: `(skipped: no network)`. */
  #countSkipped(module: TestModule, name: string, note?: string): void {
    this.#progressOf(module.project).skipped += 1
    const reason = note ?? /\(skipped: ([^)]*)\)/.exec(name)?.[1] ?? name
    const where = `${nameOf(module)}: ${reason}`
    this.#skipped.set(where, (this.#skipped.get(where) ?? 0) + 1)
  }

  /** Failures of hooks, of imports and of whatever nobody awaited. */
  #countOther(where: string, errors: readonly SerializedError[], project: TestProject | undefined): void {
    if (errors.length === 0) return
    this.#otherFailures += 1
    this.#printFailure(where, errors, project)
  }

  #printFailure(where: string, errors: readonly SerializedError[], project: TestProject | undefined): void {
    this.#print(`\n${styleText(['red', 'bold'], 'FAILED')} ${where}`)
    for (const error of errors) this.#vitest?.logger.printError(error, project === undefined ? {} : { project })
  }

  #printSlowest(): void {
    if (this.#fileCount <= fewFiles) return
    this.#print('\nslowest files:')
    const slowest = this.#times.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowFilesShown)
    for (const { file, seconds, tests } of slowest)
      this.#print(`  ${elapsed(seconds * 1000).padStart(6)}  ${file} (${tests} tests)`)
  }

  #showStatus(): void {
    const now = performance.now()
    const begun = [...this.#projects].filter(([, { startedAt, done, files }]) => startedAt > 0 && done < files)
    const projects = begun.map(([name, { done, files }]) => `${name} ${done}/${files}`).join(', ')
    const running = [...this.#running.values()].map(({ file, at }) => `${file} ${elapsed(now - at)}`).join(', ')
    const tests = [...this.#projects.values()].reduce((total, { passed, failed }) => total + passed + failed, 0)
    const text = `${elapsed(now - this.#startedAt)}  ${this.#times.length}/${this.#fileCount} files, ${tests} tests | ${projects} | running ${running}`
    if (!this.#isTerminal()) {
      this.#print(text)
      return
    }
    this.#clearStatus()
    process.stdout.write(text.slice(0, Math.max(20, process.stdout.columns - 1)))
    this.#statusIsShown = true
  }

  #print(text: string): void {
    this.#clearStatus()
    process.stdout.write(`${process.stdout.isTTY ? text : stripVTControlCharacters(text)}\n`)
  }

  #clearStatus(): void {
    if (this.#statusIsShown) process.stdout.write('\r\u001b[K')
    this.#statusIsShown = false
  }

  #isTerminal(): boolean {
    return process.stdout.isTTY && process.env['CI'] === undefined
  }
}

function describe(name: string, { files, passed, failed, skipped, startedAt }: Progress, now: number): string {
  const mark = failed === 0 ? styleText('green', '✓') : styleText('red', '✗')
  const others = [...(failed > 0 ? [`${failed} failed`] : []), ...(skipped > 0 ? [`${skipped} skipped`] : [])]
  return `${mark} ${name}: ${[`${files} files`, `${passed} passed`, ...others].join(', ')}, ${elapsed(now - startedAt)}`
}

/** Path of a test file, without what all of them have. */
function nameOf({ relativeModuleId }: TestModule): string {
  return relativeModuleId.replace(/^test\//, '').replace(/\.test\.ts$/, '')
}

function elapsed(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  if (seconds < 60) return `${Math.round(seconds)}s`
  return `${Math.floor(seconds / 60)}m${String(Math.floor(seconds % 60)).padStart(2, '0')}s`
}
