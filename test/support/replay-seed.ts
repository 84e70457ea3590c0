/** Runs before each test file: makes fast-check use the seed of an earlier run, as the tests with a generator of their own do. */
const seed = process.env['INLET_TEST_SEED']

if (seed !== undefined) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })
}
