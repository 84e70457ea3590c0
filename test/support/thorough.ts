/**
 * How much a test run does. `npm test` is quick enough to run before each push. `INLET_TEST_THOROUGH=1` (.ci/thorough sets it) runs
 * the same tests longer: more random inputs, larger crowds, more kills.
 */
export const isThorough = process.env['INLET_TEST_THOROUGH'] === '1'

/** Returns a count or duration: the first number normally, the second in a thorough run. */
export function runs(quick: number, thorough: number): number {
  return isThorough ? thorough : quick
}
