/* Lattice Boltzmann, nine velocities on a plane, each cell pulling from its neighbours: flow in a channel
 * that a constant force drives, periodic along it, with walls that send back what reaches them. Its profile
 * goes towards Poiseuille's parabola. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int ny = argc > 1 ? atoi(argv[1]) : 18, nx = argc > 2 ? atoi(argv[2]) : 12;
  const int steps = argc > 3 ? atoi(argv[3]) : 400, cells = nx * ny;
  const float omega = 1.25f, force = 1e-5f;
  const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  const float weight[9] = {4 / 9.0f,  1 / 9.0f,  1 / 9.0f,  1 / 9.0f, 1 / 9.0f,
                           1 / 36.0f, 1 / 36.0f, 1 / 36.0f, 1 / 36.0f};
  float(*f)[ny][nx] = malloc(sizeof(float) * 9 * cells), (*g)[ny][nx] = malloc(sizeof(float) * 9 * cells);
  for (int q = 0; q < 9; q++)
    for (int y = 0; y < ny; y++)
      for (int x = 0; x < nx; x++) f[q][y][x] = g[q][y][x] = weight[q];

        /* Rows 0 and ny - 1 are walls; columns 0 and nx - 1 are copies of nx - 2 and 1. */
#pragma omp target data map(tofrom : f [0:9], g [0:9]) map(to : cx, cy, weight)
  for (int step = 0; step < steps; step++) {
#pragma omp target teams distribute parallel for collapse(2)
    for (int y = 1; y < ny - 1; y++)
      for (int x = 1; x < nx - 1; x++) {
        float in[9], density = 0, vx = 0, vy = 0;
        for (int q = 0; q < 9; q++) in[q] = 0;
        in[0] = f[0][y][x];
        in[1] = f[1][y][x - 1];
        in[2] = y == 1 ? f[4][y][x] : f[2][y - 1][x];
        in[3] = f[3][y][x + 1];
        in[4] = y == ny - 2 ? f[2][y][x] : f[4][y + 1][x];
        in[5] = y == 1 ? f[7][y][x] : f[5][y - 1][x - 1];
        in[6] = y == 1 ? f[8][y][x] : f[6][y - 1][x + 1];
        in[7] = y == ny - 2 ? f[5][y][x] : f[7][y + 1][x + 1];
        in[8] = y == ny - 2 ? f[6][y][x] : f[8][y + 1][x - 1];
        for (int q = 0; q < 9; q++) {
          density += in[q];
          vx += cx[q] * in[q];
          vy += cy[q] * in[q];
        }
        vx /= density;
        vy /= density;
        for (int q = 0; q < 9; q++) {
          const float along = 3 * (cx[q] * vx + cy[q] * vy);
          const float rest =
              weight[q] * density * (1 + along + 0.5f * along * along - 1.5f * (vx * vx + vy * vy));
          g[q][y][x] = in[q] + omega * (rest - in[q]) + 3 * weight[q] * density * force * cx[q];
        }
      }
#pragma omp target teams distribute parallel for collapse(2)
    for (int q = 0; q < 9; q++)
      for (int y = 1; y < ny - 1; y++) {
        g[q][y][0] = g[q][y][nx - 2];
        g[q][y][nx - 1] = g[q][y][1];
      }
    float(*t)[ny][nx] = f;
    f = g;
    g = t;
  }

  /* Viscosity (1 / omega - 1 / 2) / 3; walls half a cell outside of the rows. */
  double mass = 0, worst = 0, fastest = 0;
  for (int y = 1; y < ny - 1; y++) {
    double density = 0, vx = 0;
    for (int q = 0; q < 9; q++) density += f[q][y][1], vx += cx[q] * f[q][y][1];
    const double nu = (1 / 1.25 - 0.5) / 3, up = y - 0.5, wide = ny - 2;
    const double parabola = 1e-5 / (2 * nu) * up * (wide - up), error = vx / density + 0.5e-5 - parabola;
    mass += density;
    worst = error * error > worst * worst ? error : worst;
    fastest = parabola > fastest ? parabola : fastest;
  }
  printf("%d steps: density %.7f, at most %.3f of the fastest from the parabola\n", steps, mass / (ny - 2),
         (worst < 0 ? -worst : worst) / fastest);
  free(f);
  free(g);
  return 0;
}
