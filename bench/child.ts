/** Runs one benchmark in a process of its own, and sends each figure to main.ts as soon as it is known. */
import type { Benchmark, Options } from './figures.ts'

const [name = '', options = '{}'] = process.argv.slice(2)
const { benchmark } = (await import(`./${name}.ts`)) as { benchmark: Benchmark }
process.send?.({ about: benchmark.about })
for await (const figure of benchmark.measure(JSON.parse(options) as Options)) process.send?.({ figure })
process.disconnect?.()
