import { defineConfig } from 'vitest/config'

const node = { environment: 'node' as const, restoreMocks: true }

/** Suites by what they need: `unit` nothing, the rest real files, processes and databases of their own. */
export default defineConfig({
  test: {
    projects: [
      { test: { ...node, name: 'unit', include: ['src/**/*.test.ts', 'test/architecture.test.ts'], testTimeout: 20_000 } },
      { test: { ...node, name: 'delivery', include: ['test/delivery/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { ...node, name: 'contract', include: ['test/contract/**/*.test.ts'], testTimeout: 20_000 } },
      { test: { ...node, name: 'store', include: ['test/store/**/*.test.ts'], testTimeout: 30_000 } },
      { test: { ...node, name: 'crash', include: ['test/crash/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 60_000 } },
      { test: { ...node, name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 180_000, hookTimeout: 60_000 } },
      { test: { ...node, name: 's3', include: ['test/s3/**/*.test.ts'], testTimeout: 180_000, hookTimeout: 60_000 } },
    ],
    maxWorkers: 2,
  },
})
